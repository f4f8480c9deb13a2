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


@pytest.hookimpl(trylast=True)  # behind the selection by -m and -k
def pytest_collection_modifyitems(config, items):
    if not config.getoption("sampled"):
        return
    rows, left = {}, {item for item in items if item.get_closest_marker("everything")}
    for item in items:
        if (mark := item.get_closest_marker("one_in")) and item not in left:
            rows.setdefault((item.nodeid.split("[")[0], mark.args[0]), []).append(item)
    for (test, n), found in rows.items():
        # Tests of the same rows, such as the pages, begin at different ones.
        first = zlib.crc32(test.encode()) % min(n, len(found))
        left |= {item for place, item in enumerate(found) if place % n != first % n}
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=list(left))
    if hasattr(config, "workeroutput"):
        config.workeroutput["left"] = len(left)
    config.stash[LEFT] = len(left)


LEFT = pytest.StashKey[int]()


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's; each worker has collected the same
def pytest_testnodedown(node):
    node.config.stash[LEFT] = getattr(node, "workeroutput", {}).get("left", 0)


def pytest_terminal_summary(terminalreporter, config):
    if left := config.stash.get(LEFT, 0):
        terminalreporter.write_line(f"{left} tests left to `make everything`")
