"""What every run of pytest in this folder stands on, `pytest --nbval book` too."""

import zlib

import pytest

pytest_plugins = ["tools.kernels"]


def pytest_addoption(parser):
    parser.addoption(
        "--sampled",
        action="store_true",
        help="of the tests marked `one_in(n)` run one in n, and none that is marked `everything`",
    )


COUNT = pytest.StashKey[int]()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    # by id, since the groups of pytest-xdist change a test's name, and with it its hash
    out = set(map(id, left_out(items))) if config.getoption("sampled") else set()
    result = yield  # -m and -k choose: two steps have the same sample of what they share
    left = [item for item in items if id(item) in out]
    items[:] = [item for item in items if id(item) not in out]
    config.hook.pytest_deselected(items=left)
    config.stash[COUNT] = len(left)
    if hasattr(config, "workeroutput"):
        config.workeroutput["left"] = len(left)
    return result


def left_out(items) -> set:
    rows, left = {}, {item for item in items if item.get_closest_marker("everything")}
    for item in items:
        if (mark := item.get_closest_marker("one_in")) and item not in left:
            test = item.nodeid.split("[")[0]
            # Tests of the same rows, such as the pages, begin at different ones, unless they say.
            first = mark.kwargs.get("first", zlib.crc32(test.encode()))
            rows.setdefault((test, *mark.args, first), []).append(item)
    for (_, n, first), found in rows.items():
        kept = first % min(n, len(found))
        left |= {item for place, item in enumerate(found) if place % n != kept}
    return left


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's; each worker has collected the same
def pytest_testnodedown(node):
    node.config.stash[COUNT] = getattr(node, "workeroutput", {}).get("left", 0)


def pytest_terminal_summary(terminalreporter, config):
    if left := config.stash.get(COUNT, 0):
        terminalreporter.write_line(f"{left} tests left to `make everything`")
