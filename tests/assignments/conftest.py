"""What every test of the assignments reads: the sources, the released notebooks, the answers."""

import importlib.util
import itertools
import shutil
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from assignments.course import SOURCE
from assignments.grade import grade
from assignments.intake.notebooks import read
from assignments.release import release
from tests.assignments.submissions import Mistake, Right, reference_answers, submission

ANSWERS = Path(__file__).with_name("answers")
SEED = 2027
NAMES = sorted(path.stem for path in SOURCE.glob("*/*.ipynb"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Give what asks for one bank of answers to one worker of pytest-xdist, which grades it once;
    any other file to one worker too.
    """
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            bank = "graded_bank" in item.fixturenames
            group = f"bank of {item.callspec.params['name']}" if bank else str(item.path)
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_terminal_summary(terminalreporter):
    """Print what the classes took, wherever they were graded."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    for report in reports:
        for name, text in report.user_properties:
            if name == "graded":
                terminalreporter.write_line(text)


def source(name: str) -> nbformat.NotebookNode:
    return nbformat.read(SOURCE / name / f"{name}.ipynb", as_version=4)


def answers(name: str):
    """The module with an assignment's MISTAKES and RIGHT; its name is none that Python imports."""
    spec = importlib.util.spec_from_file_location("answers", ANSWERS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def side_by_side(known):
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
    mistakes: dict[str, list[Mistake]]
    rights: dict[str, list[Right]]
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
def graded_bank(released, tmp_path_factory):
    """Grades an assignment's reference, stub, mistakes and right answers, when first asked."""

    @cache
    def grade_bank(name: str) -> Graded:
        folder, known = tmp_path_factory.mktemp(name), answers(name)
        reference = reference_answers(source(name))
        mistakes = {f"mistaken {i}": g for i, g in enumerate(side_by_side(known.MISTAKES))}
        rights = {f"right {i}": g for i, g in enumerate(side_by_side(known.RIGHT))}
        submissions = {"reference": reference, "stub": {}}
        for student, group in (mistakes | rights).items():
            submissions[student] = reference | {answer.cell: answer.code for answer in group}
        handed_in = folder / "in"
        handed_in.mkdir()
        blank = nbformat.read(released / f"{name}.ipynb", as_version=4)
        for student, cells in submissions.items():
            text = nbformat.writes(submission(blank, cells))
            (handed_in / f"{student}.ipynb").write_text(text, "utf-8")
        shutil.copytree(SOURCE / name, folder / "source" / name)  # a course of this one alone
        graded = grade(handed_in, folder / "grades", source=folder / "source")
        rows = {row["student"]: row for row in graded}
        return Graded(folder, handed_in, mistakes, rights, rows)

    return grade_bank


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
