"""The summary at the end of `make test` can be trusted, and no test is in no step."""

import os
import subprocess
import sys
from collections import Counter

import pytest
import yaml

from tools.check import ROOT, SLOW, STEPS, cores, count, main


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
    assert main([]) == 0
    n_run = len(STEPS) - len(SLOW)
    *_, left, total = capsys.readouterr().out.splitlines()
    assert left == f"left to `make everything`: {', '.join(SLOW)}"
    assert total == f"{11 * n_run} passed, 0 failed"
    main(["unit"])
    assert "make everything" not in capsys.readouterr().out


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


def collected(*arguments):
    """The names that pytest lists; a second -q would have it count them instead."""
    chosen = [each for each in arguments if each != "-q"]
    command = [sys.executable, "-m", "pytest", *chosen, "--collect-only", "-q", "-n", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_every_test_is_in_one_step():
    steps = [command[3:] for command in STEPS.values() if command[1:3] == ["-m", "pytest"]]
    found = Counter(test for step in steps for test in collected(*step))
    assert [test for test, times in found.items() if times > 1] == []
    assert set(collected("tests")) - set(found) == set()


def test_the_environment_of_another_checkout_is_refused(tmp_path):
    """It would run that one's code, and installing into it would take the package away there."""
    (tmp_path / "installed").write_text("/elsewhere\n", "utf-8")
    make = ["make", "--dry-run", "book", f"VENV={tmp_path}"]
    run = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode and "is the environment of /elsewhere, and this is" in run.stderr
