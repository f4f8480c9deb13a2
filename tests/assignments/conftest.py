"""What every test of the assignments reads: the sources, the released notebooks, the answers."""

import itertools
import shutil
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from assignments.course import SOURCE
from assignments.grade import grade
from assignments.intake.notebooks import read
from assignments.release import release
from tests.assignments.submissions import Answer, bank, reference_answers, source, submission

SEED = 2027
NAMES = sorted(path.stem for path in SOURCE.glob("*/*.ipynb"))
GRADED = "6-capstone"  # whose bank goes through `make grade`: a person marks a part of it too


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Give what asks for the graded bank to one worker of pytest-xdist, which grades it once;
    any other file to one worker too, but the answers, which are judged a bank at a time.
    """
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            bank = "graded_bank" in item.fixturenames
            if bank or item.path.name != "test_answers.py":
                item.add_marker(pytest.mark.xdist_group("the bank" if bank else str(item.path)))


def pytest_terminal_summary(terminalreporter):
    """Print what the class took, wherever it was graded."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    for report in reports:
        for name, text in report.user_properties:
            if name == "graded":
                terminalreporter.write_line(text)


def side_by_side(known: list[Answer]):
    """Groups of answers for different cells: every group is a submission of its own."""
    by_cell = {}
    for answer in known:
        by_cell.setdefault(answer.cell, []).append(answer)
    for group in itertools.zip_longest(*by_cell.values()):
        yield [answer for answer in group if answer is not None]


class Graded(NamedTuple):
    """A bank of answers that `make grade` has graded.

    handed_in: the folder of the submissions; the others are by the name of a submission.
    """

    folder: Path
    handed_in: Path
    mistakes: dict[str, list[Answer]]
    rights: dict[str, list[Answer]]
    rows: dict[str, dict[str, str]]


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Path:
    """The folder of the class's course, and beside it what `make assignments` fills."""
    folder = tmp_path_factory.mktemp("release")
    release(folder / "assignments", folder / "course", SEED)
    return folder / "course"


@pytest.fixture(scope="session")
def released(course) -> Path:
    return course.with_name("assignments")


@pytest.fixture(scope="session")
def graded_bank(released, tmp_path_factory) -> Graded:
    """The reference, the stub, the mistakes and the right answers of one assignment, graded."""
    folder = tmp_path_factory.mktemp(GRADED)
    reference = reference_answers(source(GRADED))
    mistakes, rights = (
        {f"{kind} {i}": group for i, group in enumerate(side_by_side(answers))}
        for kind, answers in zip(("mistaken", "right"), bank(GRADED), strict=True)
    )
    submissions = {"reference": reference, "stub": {}}
    for student, group in (mistakes | rights).items():
        submissions[student] = reference | {answer.cell: answer.code for answer in group}
    handed_in = folder / "in"
    handed_in.mkdir()
    blank = nbformat.read(released / f"{GRADED}.ipynb", as_version=4)
    for student, cells in submissions.items():
        text = nbformat.writes(submission(blank, cells))
        (handed_in / f"{student}.ipynb").write_text(text, "utf-8")
    shutil.copytree(SOURCE / GRADED, folder / "source" / GRADED)  # a course of this one alone
    graded = grade(handed_in, folder / "grades", source=folder / "source")
    rows = {row["student"]: row for row in graded}
    return Graded(folder, handed_in, mistakes, rights, rows)


@pytest.fixture
def student_version(released):
    """Reads a released notebook."""
    return lambda name: nbformat.read(released / f"{name}.ipynb", as_version=4)


@pytest.fixture(scope="session")
def releases(released):
    return {name: nbformat.read(released / f"{name}.ipynb", as_version=4) for name in NAMES}


@pytest.fixture
def handed_in(releases):
    """A released notebook as it comes back."""
    return lambda name=NAMES[0]: read(nbformat.writes(releases[name]).encode())
