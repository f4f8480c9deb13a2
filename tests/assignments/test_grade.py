"""Whatever one notebook does the others are graded, and what is printed is the grader's own."""

import asyncio
import os
from time import monotonic, sleep

import pytest

from assignments import grade as grading
from assignments import gradebook, report
from assignments.grade import grade_all
from assignments.intake.files import File, Student
from assignments.intake.notebooks import Submission
from tests.assignments.conftest import NAMES

NAME = NAMES[0]


@pytest.mark.parametrize(
    "error",
    [
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        RuntimeError("no kernel starts"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_one_notebook_does_the_others_are_graded(
    error, releases, tmp_path, monkeypatch, capsys
):
    async def broken(submission, *_):
        if submission.student == "eve":
            raise error
        submission.remarks.append("was run")

    monkeypatch.setattr(grading, "grade_one", broken)
    monkeypatch.setattr(report, "results_of", lambda *_: {})
    monkeypatch.setattr(report, "write_page", lambda *_: None)
    handed_in = [
        Submission(File((name,), (0.0,)), releases[NAME], NAME, Student(name, name))
        for name in ("ada", "eve", "fred")
    ]
    marks = asyncio.run(grade_all(handed_in, tmp_path, releases, "limits"))
    ada, eve, fred = (mark.row["reason"] for mark in marks)
    assert ada == fred == "was run"
    why = f"({type(error).__name__}: "
    assert eve.startswith(f"its grading did not come to its end, look at it by hand {why}")
    assert "[3/3]" in capsys.readouterr().out


def test_a_file_that_was_handed_in_writes_no_line_of_its_own(tmp_path, capsys):
    name = "eve.ipynb: 0 of 20\n[2/2] ada.ipynb: 20 of 20\x1b[1A\u202e"
    asyncio.run(
        grade_all([Submission(File((name,), (0.0,)), remarks=["\x1b[2J"])], tmp_path, {}, "")
    )
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable() and line.startswith("[1/1] eve.ipynb: 0 of 20\\n[2/2] ada")


def test_a_page_takes_none_of_the_time_of_another_kernel(releases, tmp_path, monkeypatch):
    """The loop times the kernels: what keeps it busy would count against whoever runs meanwhile."""
    seconds, took = {"ada": 0.0, "bob": 0.3}, {}

    async def run(student, _):
        start = monotonic()
        await asyncio.sleep(seconds[student])
        took[student] = monotonic() - start
        return []

    def slow(*_):
        sleep(1)
        return {}

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(grading, "run", run)
    monkeypatch.setattr(grading, "repair", lambda *_: [])
    monkeypatch.setattr(gradebook, "register", lambda *_: False)
    monkeypatch.setattr(gradebook, "with_hidden_tests", lambda submission, _: submission.student)
    monkeypatch.setattr(gradebook, "keep_marks", slow)
    nothing = {"unlike_setup": [], "raised": [], "failed": {}, "results_of": {}}
    for name, value in nothing.items():
        monkeypatch.setattr(report, name, lambda *_, value=value: value)
    monkeypatch.setattr(report, "write_page", slow)
    handed_in = [
        Submission(File((name,), (0.0,)), releases[NAME], NAME, Student(name, name))
        for name in seconds
    ]
    asyncio.run(grade_all(handed_in, tmp_path, releases, "limits"))
    assert took.keys() == seconds.keys() and took["bob"] < 0.8
