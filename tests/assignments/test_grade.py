"""Whatever one notebook does the others are graded, and what is printed is the grader's own."""

import asyncio

from assignments import grade as grading
from assignments import report
from assignments.grade import grade_all
from assignments.intake.files import File, Student
from assignments.intake.notebooks import Submission
from tests.assignments.conftest import NAMES

NAME = NAMES[0]


def test_whatever_one_notebook_does_the_others_are_graded(releases, tmp_path, monkeypatch, capsys):
    async def broken(submission, *_):
        if submission.student == "eve":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
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
    assert eve.startswith("its grading did not come to its end, look at it by hand (UnicodeEncode")
    assert "[3/3]" in capsys.readouterr().out


def test_a_file_that_was_handed_in_writes_no_line_of_its_own(tmp_path, capsys):
    name = "eve.ipynb: 0 of 20\n[2/2] ada.ipynb: 20 of 20\x1b[1A\u202e"
    asyncio.run(
        grade_all([Submission(File((name,), (0.0,)), remarks=["\x1b[2J"])], tmp_path, {}, "")
    )
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable() and line.startswith("[1/1] eve.ipynb: 0 of 20\\n[2/2] ada")
