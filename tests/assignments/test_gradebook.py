"""Marks by machine and by hand: a warning costs none, and what was given by hand stays."""

import re
import shutil

import nbformat
import pytest
from nbgrader.api import Gradebook

from assignments import gradebook
from assignments.course import grade_id
from assignments.grade import grade
from assignments.intake.files import File, Student
from assignments.intake.notebooks import Submission
from assignments.repair import repair
from assignments.sandbox import landlock
from tests.assignments.submissions import reference_answers, source, submission

NAME = "6-capstone"
WARNING = """

without_warning = {0}
def {0}(*arguments, **named):
    import sys
    print("careful", file=sys.stderr)
    return without_warning(*arguments, **named)
"""

pytestmark = pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")


@pytest.fixture(scope="module")
def graded(released, tmp_path_factory):
    """Ada and Bob answer all; an answer of Bob's prints a warning."""
    folder = tmp_path_factory.mktemp("graded")
    notebook = nbformat.read(released / f"{NAME}.ipynb", as_version=4)
    answers = reference_answers(source(NAME)) | {"explain": "Because a < b."}
    function = re.search(r"def (\w+)", answers["torch-mask"])[1]
    warned = answers | {"torch-mask": answers["torch-mask"] + WARNING.format(function)}
    (folder / "in").mkdir()
    for name, cells in {"ada": answers, "bob": warned}.items():
        nbformat.write(submission(notebook, cells), folder / "in" / f"{name}.ipynb")
    return folder, grade(folder / "in", folder / "grades")


def test_a_warning_costs_nothing(graded):
    folder, rows = graded
    assert [row["points"] for row in rows] == ["15", "15"]
    page = (folder / "grades/feedback/bob" / NAME / f"{NAME}.html").read_text("utf-8")
    assert "careful" in page


def test_marks_given_by_hand_stay(graded):
    folder, rows = graded
    assert [row["status"] for row in rows] == ["to be graded by hand"] * 2
    assert [row["by_hand"] for row in rows] == ["explain"] * 2
    with Gradebook(f"sqlite:///{folder}/grades/gradebook.db", "attention") as gradebook:
        mark = gradebook.find_grade("explain", NAME, NAME, "ada")
        mark.manual_score, mark.needs_manual_grade = 3.5, False
        gradebook.find_comment("explain", NAME, NAME, "ada").manual_comment = "Which word?"
        gradebook.db.commit()
    # What Bob hands in a second time is looked at a second time.
    late = nbformat.read(folder / "in/bob.ipynb", as_version=4)
    late.cells[-1].source += " "
    nbformat.write(late, folder / "in/bob.ipynb")
    ada, bob = grade(folder / "in", folder / "grades")
    assert (ada["status"], ada["points"], ada["explain"]) == ("graded", "18.5", "3.5")
    assert bob["status"] == "to be graded by hand" and bob["explain"] == ""
    page = (folder / "grades/feedback/ada" / NAME / f"{NAME}.html").read_text("utf-8")
    marks = (folder / "grades/grades-moodle.csv").read_text("utf-8")
    assert "5. Explain the map: Which word?" in marks and "ada" in marks and "bob" not in marks
    assert "bob" in (folder / "grades/grades-left-out.csv").read_text("utf-8-sig")
    assert "Which word?" in page and "<b>18.5</b> of 20 points" in page


def test_what_nobody_has_marked_by_hand_waits_however_often_it_is_graded(
    course, handed_in, releases, tmp_path
):
    root = shutil.copytree(course, tmp_path / "course")
    for again in (False, True):
        ada = Submission(File(("ada",), (0.0,), b"{"), handed_in(NAME), NAME, Student("ada", "ada"))
        assert gradebook.register(ada, root) == again
        repair(ada.notebook, releases[NAME])
        notebook = gradebook.with_hidden_tests(ada, root)
        for cell in notebook.cells:
            cell.source = "Because a < b." if grade_id(cell) == "explain" else cell.source
        gradebook.keep_marks(ada, notebook, root, again)
        marks = gradebook.marks(ada, root)
        assert marks["status"] == "to be graded by hand"
        assert (marks["by_hand"], marks["explain"]) == ("explain", "")
