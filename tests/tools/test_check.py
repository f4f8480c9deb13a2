"""The summary at the end of `make test` can be trusted, and no test is in no step."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from tools.check import ROOT, SLOW, STEPS, cores, count, main
from tools.touched import CHAPTERS, touched


@pytest.mark.parametrize(
    ("status", "output", "counts"),
    [
        (0, "....\n12 passed in 3.41s\n", (12, 0, 0, 0)),
        (
            0,
            "== 12 passed, 2 skipped, 1 xfailed, 3 warnings in 63.41s (0:01:03) ==\n",
            (12, 0, 2, 0),
        ),
        (1, "= 2 failed, 10 passed, 1 error in 3.41s =\n", (10, 3, 0, 0)),
        (0, "11 passed, 1 rerun in 3.41s\n", (11, 0, 0, 1)),
        (5, "no tests ran in 0.01s\n", (0, 1, 0, 0)),
        (2, "ImportError while loading conftest\n", (0, 1, 0, 0)),
        (3, "12 passed in 3.41s\nINTERNALERROR\n", (12, 1, 0, 0)),
        (0, "All checks passed!\n", (1, 0, 0, 0)),
        (1, "Found 3 errors.\n", (0, 1, 0, 0)),
        (-9, "", (0, 1, 0, 0)),
    ],
)
def test_a_step_is_counted(status, output, counts):
    assert tuple(count(status, output).values()) == counts


def test_the_summary_names_what_was_left_out(monkeypatch, capsys):
    monkeypatch.setattr("tools.check.run", lambda *_: (0, "11 passed in 3.41s\n"))
    monkeypatch.setattr("tools.touched.changed", lambda: {"book/03-splitting-heads.ipynb"})
    assert main([]) == 0
    n_run, others = len(STEPS) - len(SLOW), len(CHAPTERS) - 1
    *_, left, total = capsys.readouterr().out.splitlines()
    assert left == f"left to `make everything`: {', '.join(SLOW)}, notebooks of {others} chapters"
    assert total == f"{11 * n_run} passed, 0 failed"
    main(["unit"])
    assert "make everything" not in capsys.readouterr().out


def test_once_is_less_than_everything(monkeypatch, capsys):
    ran = []
    said = "7 tests left to `make everything`\n11 passed in 3.41s\n"
    monkeypatch.setattr("tools.check.run", lambda command, _: ran.append(command) or (0, said))
    assert main(["ci"]) == main(["everything"]) == 0
    once, whole = ran[: len(STEPS)], ran[len(STEPS) :]
    assert once == list(STEPS.values())
    assert whole == [[part for part in command if part != "--sampled"] for command in once]
    assert whole != once and "7 rows of pages" in capsys.readouterr().out
    assert main(["page"]) == 2 and len(ran) == 2 * len(STEPS)


def test_the_summary_says_when_the_clock_is_broken(monkeypatch, capsys):
    times = iter(range(0, 10**9, 100))  # a step takes 100 s or more
    monkeypatch.setattr("tools.check.time.monotonic", lambda: next(times))
    monkeypatch.setattr("tools.check.run", lambda *_: (0, "11 passed in 3.41s\n"))
    main(["lint"])
    assert "over the clock" not in capsys.readouterr().out
    main(["ci"])
    assert re.search(r"over the clock: \d+ min, of 23 on", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("limit", "most"), [("150000 100000", 1), ("50000 100000", 1), ("max 1", 64)]
)
def test_a_container_may_have_fewer_cores(tmp_path, monkeypatch, limit, most):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    (tmp_path / "cpu.max").write_text(limit, "ascii")
    assert cores(tmp_path / "cpu.max") == most
    assert cores(tmp_path / "none") == 64


def test_continuous_integration_runs_every_step():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert tuple(workflow["jobs"]["slow"]["strategy"]["matrix"]["step"]) == SLOW
    whole = yaml.safe_load((ROOT / ".github/workflows/everything.yml").read_text("utf-8"))
    tested = {name for name, command in STEPS.items() if command[1:3] == ["-m", "pytest"]}
    assert {
        step
        for steps in whole["jobs"]["everything"]["strategy"]["matrix"]["steps"]
        for step in steps.split()
    } == tested


# Prints of every test its name, its file and its marks.
LIST = """
import sys, pytest

class Lister:
    def pytest_collection_finish(self, session):
        for item in session.items:
            marks = {mark.name for mark in item.iter_markers()}
            print("listed", item.nodeid, item.path.relative_to(session.path), *marks, sep="\\t")

sys.exit(pytest.main(["tests", "--collect-only", "-q", "-n", "0"], plugins=[Lister()]))
"""


def takes(step, path, marks):
    """Whether a step's command takes a test: for each to collect all again would take minutes."""
    places = [each for each in step if (ROOT / each).exists()]
    ignored = [each.removeprefix("--ignore=") for each in step if each.startswith("--ignore=")]
    wanted = step[step.index("-m") + 1] if "-m" in step else "True"
    return (
        any(path.is_relative_to(place) for place in places)
        and not any(path.is_relative_to(place) for place in ignored)
        and eval(wanted, {}, defaultdict(bool, dict.fromkeys(marks, True)))
    )


@pytest.mark.everything
@pytest.mark.slow
def test_every_test_is_in_one_step():
    steps = [command[3:] for command in STEPS.values() if command[1:3] == ["-m", "pytest"]]
    done = subprocess.run([sys.executable, "-c", LIST], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [
        line.split("\t")[1:] for line in done.stdout.splitlines() if line.startswith("listed\t")
    ]
    assert len(lines) > 7000
    found = {test: sum(takes(s, Path(path), marks) for s in steps) for test, path, *marks in lines}
    assert {test: times for test, times in found.items() if times != 1} == {}


GROUP = """
import pytest

@pytest.mark.parametrize("n", range(8))
@pytest.mark.xdist_group("one")
def test(n):
    pass
"""


@pytest.mark.slow
def test_what_is_one_group_stays_with_one_worker(tmp_path):
    """pytest-xdist says nothing where it loses the groups, and each worker grades all classes."""
    (tmp_path / "test_group.py").write_text(GROUP, "utf-8")
    _, _, _, tests, *options = (part for part in STEPS["assignments"] if part != "--sampled")
    assert tests == "tests/assignments"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-vv"],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_XDIST_AUTO_NUM_WORKERS": "2"},
        capture_output=True,
        text=True,
    )
    workers = re.findall(r"^\[(gw\d)\].*PASSED", run.stdout, re.MULTILINE)
    assert len(workers) == 8 and len(set(workers)) == 1, run.stdout + run.stderr


def test_the_environment_of_another_checkout_is_refused(tmp_path):
    """It would run that one's code, and installing into it would take the package away there."""
    (tmp_path / "installed").write_text("/elsewhere\n", "utf-8")
    make = ["make", "--dry-run", "book", f"VENV={tmp_path}"]
    run = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode and "is the environment of /elsewhere, and this is" in run.stderr


@pytest.mark.parametrize(
    ("file", "run"),
    [
        ("book/03-splitting-heads.ipynb", {"03"}),
        ("src/attention/checks/splitting.py", {"03", "07", "11"}),
        ("src/attention/checks/mean_weight.toml", {"08"}),
        ("src/attention/drawings/strips.py", {"05", "06", "12", "14", "16"}),
        ("src/attention/explore/masking.py", {"05"}),
        ("README.md", set()),
    ],
)
def test_a_branch_runs_the_chapters_that_it_touches(file, run):
    assert {chapter.stem[:2] for chapter in touched({file})} == run


def test_what_every_chapter_stands_on_touches_them_all():
    for file in (
        "requirements.txt",
        "src/attention/__init__.py",
        "src/attention/gone.py",
        "src/attention/trained/dates/weights/x.safetensors",
    ):
        assert touched({file}) == touched(None) == CHAPTERS
    computing = {chapter.stem for chapter in touched({"src/attention/dot_product.py"})}
    assert len(computing) > len(CHAPTERS) / 2


SAMPLED = """
import pytest

@pytest.mark.one_in(4)
@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("n", range(10))
def test_many(n):
    pass

@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", range(2))
def test_few(n):
    pass

@pytest.mark.everything
def test_left():
    pass
"""


@pytest.mark.slow
def test_of_many_rows_some_are_run_and_the_others_are_counted(tmp_path):
    (tmp_path / "test_sampled.py").write_text(SAMPLED, "utf-8")
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text("utf-8"), "utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "--sampled"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    passed = int(re.search(r"(\d+) passed", run.stdout)[1])
    left = int(re.search(r"^(\d+) tests left", run.stdout, re.MULTILINE)[1])
    assert passed in (3, 4) and passed + left == 13
