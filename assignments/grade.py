"""Grade a class: a folder of notebooks goes in, feedback pages and one CSV come out.

    python -m assignments.grade submissions [--assignment 1-projection] [--seed 2027]

writes to `_build/grades/`: `grades.csv`, a row for every file; `feedback/`, a page for every graded
notebook; and nbgrader's own `gradebook.db`, `submitted/` and `autograded/`, on which its formgrader
opens for what is graded by hand. Marks that were given there stay when this is run again.

Each notebook runs in a kernel of its own, as many at a time as there are cores, and can do there
what kernel.py says.
"""

import argparse
import asyncio
import csv
import os
import re
import resource
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import nbformat
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import CheckCellMetadata, LimitOutput, OverwriteCells, SaveAutoGrades

from assignments import landlock, seccomp
from assignments.collect import File, files_in, students
from assignments.course import ROOT, SOURCE, make_course, settings
from assignments.feedback import feedback
from assignments.mend import is_test, mend, read, recognise, seed_of
from assignments.run import NOT_GRADED, called, run

GRADES = ROOT / "_build" / "grades"
COLUMNS = [
    *("student", "assignment", "file", "status", "points", "out_of", "by_hand"),
    *("reason", "feedback"),
]
TOLD = 200  # characters of a message that a row has room for


@dataclass
class Submission:
    """A file, and what became of it.

    remarks: what there is to say about the file and its run, in words.
    feedback: what the tests said that failed.
    graded: whether it has marks.
    """

    file: File
    notebook: NotebookNode | None = None
    assignment: str = ""
    student: str = ""
    remarks: list[str] = field(default_factory=list)
    feedback: list[str] = field(default_factory=list)
    graded: bool = False

    @property
    def reason(self) -> str:
        return "; ".join(self.remarks)


def collect(place: Path) -> list[Submission]:
    """Every file that was handed in, and its notebook where it is one."""
    found = []
    for file in files_in(place):
        submission = Submission(file)
        try:
            if file.unread:
                raise ValueError(file.unread)
            submission.notebook = read(file.data)
        except ValueError as error:
            submission.remarks.append(str(error))
        found.append(submission)
    return found


def class_seed(found: list[Submission]) -> int:
    """The seed that most notebooks were handed out with."""
    seeds = Counter(
        seed for submission in found if submission.notebook
        if (seed := seed_of(submission.notebook)) is not None
    )  # fmt: skip
    if not seeds:
        return 0
    seed, count = seeds.most_common(1)[0]
    print(f"The class's seed is {seed}, as in {count} of {seeds.total()} notebooks.")
    return seed


def assign(found: list[Submission], releases: dict[str, NotebookNode], only: str | None) -> None:
    """Find each notebook's assignment and student, and which of a student's files is the one."""
    for submission in found:
        if submission.notebook is None:
            continue
        try:
            submission.assignment = recognise(submission.notebook, releases)
        except ValueError as error:
            submission.notebook = None
            submission.remarks.append(str(error))
    named = students(
        [submission.file for submission in found],
        {s.file: s.assignment for s in found if s.assignment},
    )
    newest = {}
    for submission in found:
        submission.student = named[submission.file]
        if only and submission.assignment not in ("", only):
            submission.notebook = None
            submission.remarks.append(f"this is {submission.assignment}, and {only} was graded")
        elif submission.notebook:
            newest.setdefault((submission.student, submission.assignment), []).append(submission)
    for rivals in newest.values():
        *older, last = sorted(rivals, key=lambda rival: (rival.file.changed, rival.file.name))
        for rival in older:
            rival.notebook = None
            same = rival.file.data == last.file.data
            rival.remarks.append(
                f"of {len(rivals)} files of this student the "
                f"{'same' if same else 'newer'} {last.file.name} was graded"
            )
        if older:
            last.remarks.append(f"of {len(rivals)} files of this student this is the newest")


def without_extras(found: list[Submission]) -> list[Submission]:
    """All but what a student put beside a notebook, such as a picture."""
    with_notebook = {submission.student for submission in found if submission.assignment}
    return [s for s in found if s.assignment or is_meant(s) or s.student not in with_notebook]


def is_meant(submission: Submission) -> bool:
    """Whether a file that is no notebook was meant to be one."""
    return ".ipynb" in submission.file.parts[-1].lower()


async def grade_one(submission: Submission, root: Path, release: NotebookNode, mode: str) -> None:
    """Grade a notebook: its marks are in the gradebook afterwards, its page in `feedback`."""
    name, student = submission.assignment, submission.student
    config = settings(root)
    resources = {
        "unique_key": name,
        "metadata": {"name": name},
        "nbgrader": {
            "student": student,
            "assignment": name,
            "notebook": name,
            "db_url": config.CourseDirectory.db_url,
        },
    }
    handed_in = root / "submitted" / student / name / f"{name}.ipynb"
    again = handed_in.exists() and handed_in.read_bytes() == submission.file.data
    handed_in.parent.mkdir(parents=True, exist_ok=True)
    handed_in.write_bytes(submission.file.data)
    with Gradebook(config.CourseDirectory.db_url, "attention") as gradebook:
        gradebook.update_or_create_student(student)
        gradebook.update_or_create_submission(name, student)

    notebook = submission.notebook
    submission.remarks += mend(notebook, release)
    for preprocessor in (OverwriteCells(), CheckCellMetadata()):
        notebook, resources = preprocessor.preprocess(notebook, resources)
    submission.remarks += await run(notebook, mode)
    submission.remarks += raised(notebook)
    submission.feedback = failed(notebook)
    count_errors_alone(notebook)
    for preprocessor in (
        *(ClearMetadataPreprocessor(preserve_cell_metadata_mask={"nbgrader"}), LimitOutput()),
        # formgrader shows what is in it to somebody who is logged in
        *(SaveAutoGrades(), SanitizeHTML()),
    ):
        notebook, resources = preprocessor.preprocess(notebook, resources)
    if again:
        keep_marks(config.CourseDirectory.db_url, student, name)
    graded = root / "autograded" / student / name / f"{name}.ipynb"
    graded.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, graded)
    submission.graded = True
    page = root / "feedback" / student / name / f"{name}.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(feedback(notebook, resources, submission.remarks), "utf-8")


def raised(notebook: NotebookNode) -> list[str]:
    """Which cells that are no tests raised an error, other than what is still to be written."""
    return [
        in_a_row(f"{called(notebook, place)} raised {error.ename}: {error.evalue}")
        for place, cell in enumerate(notebook.cells)
        if not is_test(cell) and (error := error_of(cell))
        and error.ename not in ("NotImplementedError", "NotYet", "AssertionError", NOT_GRADED)
    ]  # fmt: skip


def failed(notebook: NotebookNode) -> list[str]:
    """What the tests said that failed, without the check's own name and verdict."""
    said = []
    for place, cell in enumerate(notebook.cells):
        if is_test(cell) and (error := error_of(cell)):
            text = re.sub(r"^\w+: not yet\.\s+", "", error.evalue) or error.ename
            said.append(in_a_row(f"{called(notebook, place)}: {text}"))
    return said


def error_of(cell: NotebookNode) -> NotebookNode | None:
    return next((o for o in cell.get("outputs", []) if o.output_type == "error"), None)


def in_a_row(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= TOLD else text[:TOLD] + " …"


def count_errors_alone(notebook: NotebookNode) -> None:
    """A warning in a test is no error, which nbgrader takes what is on stderr for."""
    for cell in filter(is_test, notebook.cells):
        for output in cell.outputs:
            if output.output_type == "stream":
                output.name = "stdout"
            elif output.output_type == "error" and output.ename == "AssertionError":
                # The words are for the learner, the lines around them may be hidden tests.
                output.traceback = [output.evalue or "AssertionError"]


def keep_marks(db_url: str, student: str, name: str) -> None:
    """A mark that was given for the very same file needs no second look."""
    with Gradebook(db_url, "attention") as gradebook:
        for grade in gradebook.find_submission_notebook(name, name, student).grades:
            if grade.manual_score is not None:
                grade.needs_manual_grade = False
        gradebook.db.commit()


async def grade_all(
    found: list[Submission], root: Path, releases: dict[str, NotebookNode], mode: str
) -> list[dict[str, str]]:
    """Grade side by side, and tell of each when it is done. Returns the rows of the CSV."""
    cores = asyncio.Semaphore(os.cpu_count() or 1)
    done = 0

    async def one(submission: Submission) -> dict[str, str]:
        nonlocal done
        async with cores:
            if submission.notebook:
                try:
                    await grade_one(submission, root, releases[submission.assignment], mode)
                except Exception as error:  # the others are graded all the same
                    traceback.print_exc()
                    submission.remarks.append(f"grading failed: {type(error).__name__}, {error}")
        done += 1
        row = row_of(submission, root)
        told = f"{row['points']} of {row['out_of']}" if submission.graded else "not graded"
        reason = f" ({submission.reason})" if submission.remarks else ""
        print(f"[{done}/{len(found)}] {submission.file.name}: {told}{reason}", flush=True)
        return row

    return await asyncio.gather(*map(one, found))


def row_of(submission: Submission, root: Path) -> dict[str, str]:
    """A row of the CSV: what is known of the file, and the points of its test cells."""
    row = {
        "student": submission.student,
        "assignment": submission.assignment,
        "file": submission.file.name,
        "status": "not graded",
        "reason": submission.reason,
        "feedback": "; ".join(submission.feedback),
    }
    if not submission.graded:
        return row
    name = submission.assignment
    with Gradebook(settings(root).CourseDirectory.db_url, "attention") as gradebook:
        marked = gradebook.find_submission_notebook(name, name, submission.student)
        by_hand = [grade.name for grade in marked.grades if grade.needs_manual_grade]
        row |= {
            "status": "to be graded by hand" if by_hand else "graded",
            "points": f"{marked.score:g}",
            "out_of": f"{marked.max_score:g}",
            "by_hand": " ".join(by_hand),
        }
        for grade in marked.grades:
            row[grade.name] = "" if grade.needs_manual_grade else f"{grade.score:g}"
    return row


def write_settings(root: Path) -> None:
    """What formgrader reads when Jupyter is started in this folder.

    The folder itself it finds there, under another path too: graded in a container, or moved.
    """
    course = settings(root).CourseDirectory.course_id
    (root / "nbgrader_config.py").write_text(f"c.CourseDirectory.course_id = {course!r}\n", "utf-8")


def write_csv(rows: Iterable[dict[str, str]], path: Path, cells: list[str]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:  # the mark tells a spreadsheet
        table = csv.DictWriter(file, [*COLUMNS, *cells])
        table.writeheader()
        for row in rows:
            table.writerow({column: no_formula(text) for column, text in row.items()})


def no_formula(text: str) -> str:
    """A spreadsheet computes what begins like a formula, and students choose names."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def sandbox(wanted: str) -> str:
    """The mode of the kernels. Raises ValueError where this system has not what is wanted."""
    if wanted == "limits":
        print("Sandbox: limits alone. Students' code can read and write what you can.")
    elif landlock.version() and seccomp.available():
        print(f"Sandbox: limits, Landlock {landlock.version()}, seccomp.")
    else:
        raise ValueError(
            "This system has no Landlock (Linux from 5.13 on, on an x86-64 or Arm processor, has), "
            "so that students' code could read and write what you can. Grade in a container on "
            "Linux; or, if you trust the code, say so: make grade SANDBOX=limits …"
        )
    return wanted


def grade(
    place: Path,
    root: Path = GRADES,
    *,
    only: str | None = None,
    seed: int | None = None,
    mode: str = "full",
    source: Path = SOURCE,
) -> list[dict[str, str]]:
    """Grade what lies in a folder or a zip. Returns the rows of the CSV.

    root: the folder that is written to.
    only: the one assignment that is graded; the others are told apart, and left.
    seed: the class's, where it is not the one of most notebooks.
    """
    found = collect(place)
    root.mkdir(parents=True, exist_ok=True)
    names, _ = make_course(root, class_seed(found) if seed is None else seed, source)
    if only and only not in names:
        raise ValueError(f"there is no assignment {only}; there are {', '.join(names)}")
    write_settings(root)
    releases = {
        name: nbformat.read(root / "release" / name / f"{name}.ipynb", as_version=4)
        for name in names
    }
    assign(found, releases, only)
    found = without_extras(found)
    rows = asyncio.run(grade_all(found, root, releases, mode))
    rows.sort(key=lambda row: (row["student"], row["assignment"], row["file"]))
    cells = [key for row in rows for key in row if key not in COLUMNS]
    write_csv(rows, root / "grades.csv", list(dict.fromkeys(cells)))
    return rows


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m assignments.grade")
    parser.add_argument("submissions", type=Path, help="a folder or a zip of notebooks")
    parser.add_argument("--assignment", help="grade this one alone")
    parser.add_argument("--seed", type=int, help="the class's, if it is not in the notebooks")
    parser.add_argument("--sandbox", choices=["full", "limits"], default="full")
    given = parser.parse_args(arguments)
    start = monotonic()
    warnings.filterwarnings("ignore", module="nbgrader")  # of its database's library, not of ours
    try:
        if not given.submissions.exists():
            raise ValueError(f"there is no {given.submissions}")
        rows = grade(
            given.submissions.resolve(),
            only=given.assignment,
            seed=given.seed,
            mode=sandbox(given.sandbox),
        )
    except ValueError as error:
        print(error)
        return 2
    counts = Counter(row["status"] for row in rows)
    print(", ".join(f"{number} {status}" for status, number in counts.items()) or "no files")
    print(f"{monotonic() - start:.0f} s; {peak_memory()}")
    print(f"{(GRADES / 'grades.csv').relative_to(ROOT)} and the pages in feedback/ beside it")
    return 0


def peak_memory() -> str:
    unit = 2**20 if sys.platform == "darwin" else 2**10  # of ru_maxrss: bytes on a Mac
    here, kernels = (
        resource.getrusage(who).ru_maxrss / unit
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return f"at most {here:.0f} MB here and {kernels:.0f} MB in a kernel"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
