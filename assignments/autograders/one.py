"""Grade what one student handed in, by the rooms of `make grade`, as rows for any platform."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from assignments import gradebook
from assignments.course import ROOT, generate, grade_id, is_test, tasks
from assignments.errors import GradingError
from assignments.grade import grade_one, require_sandbox
from assignments.intake.notebooks import identify, take_in

COURSE = ROOT / "course"  # of a bundle: one assignment, its hidden tests, none of its solutions


@dataclass(frozen=True)
class Row:
    """A task by its title, as on the feedback page, and what its test said, "" where it passed."""

    task: str
    points: float
    out_of: float
    words: str


@dataclass(frozen=True)
class Outcome:
    """What is told of a submission.

    rows: the tasks that have a test, in the notebook's order.
    notes: what there is to say about the files, the run and what a person marks, in words.
    """

    rows: list[Row]
    notes: list[str]


@dataclass(frozen=True)
class Course:
    """A bundle's assignment in a folder where submissions are graded, with a gradebook."""

    root: Path
    name: str
    release: NotebookNode


def open_course(source: Path, root: Path) -> Course:
    """Put the course of a bundle, such as COURSE, into a folder."""
    shutil.copytree(source, root / "source")
    (name,) = (path.name for path in (root / "source").iterdir())
    generate(root, name)
    release = nbformat.read(root / "release" / name / f"{name}.ipynb", as_version=4)
    return Course(root, name, release)


async def grade_student(
    folder: Path, course: Course, mode: str, student: str = "student"
) -> Outcome:
    """Grade the newest notebook in a folder; nothing there is changed.

    mode: of the sandbox, see sandbox/kernel.py.
    student: whose all files in the folder are.

    Raises:
        Exception: the machine fails, not the student, who must not get 0 points for it.
    """
    submissions = identify(take_in(folder), {course.name: course.release}, None, student)
    chosen = next((s for s in submissions if s.notebook), None)
    notes = [f"{s.file.name}: {s.reason}" for s in submissions if s is not chosen]
    if chosen:
        await grade_one(chosen, course.root, course.release, mode)
        notes = chosen.remarks + notes
        points = gradebook.marks(chosen, course.root)
    graded = [c for c in course.release.cells if c.metadata.get("nbgrader", {}).get("grade")]
    rows, task_of = [], tasks(course.release)
    for cell in graded:
        name, out_of = grade_id(cell), cell.metadata.nbgrader.points
        task = task_of[name]
        if not is_test(cell):
            notes.append(f"{task}: {out_of:g} points, marked by hand.")
        elif chosen:
            rows.append(Row(task, float(points[name]), out_of, chosen.feedback.get(name, "")))
        else:
            found = ", ".join(s.file.name for s in submissions) or "no file"
            words = f"No notebook was found that can be graded, but {found}."
            rows.append(Row(task, 0, out_of, words))
    return Outcome(rows, notes)


def sandbox_mode() -> str:
    """The best that this system can keep; the platform's own container stands around it."""
    try:
        return require_sandbox("full")
    except GradingError:
        return require_sandbox("limits")
