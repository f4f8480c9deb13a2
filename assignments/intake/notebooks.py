"""Read the notebooks that were handed in: whose, of which assignment, and which are graded."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from assignments.course import LARGEST_SEED, SEED, SEED_CELL, grade_id, is_test, named_cells
from assignments.errors import GradingError
from assignments.intake.files import (
    NOBODY,
    File,
    Student,
    common_folder,
    files_in,
    students,
)

LARGEST = 10 * 2**20  # bytes of a notebook: a thousand times what is handed out,
CELLS = 2000  # and how many cells it has
REASON = 700  # characters that are said about a file, in a line of the terminal and a row of CSV

NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


@dataclass
class Submission:
    """A file, and what became of it.

    identity: the student, with what the LMS wrote of them.
    remarks: what there is to say about the file and its run, in words.
    feedback: what the tests said that failed, by the names of their cells.
    graded: whether it has marks.
    """

    file: File
    notebook: NotebookNode | None = None
    assignment: str = ""
    identity: Student = NOBODY
    remarks: list[str] = field(default_factory=list)
    feedback: dict[str, str] = field(default_factory=dict)
    graded: bool = False

    @property
    def student(self) -> str:
        return self.identity.name

    @property
    def reason(self) -> str:
        text = "; ".join(self.remarks)
        return text if len(text) <= REASON else f"{text[:REASON]} …"


def take_in(folder: Path) -> list[Submission]:
    """Every file in a folder or a zip, and its notebook where it is one."""
    submissions = []
    for file in files_in(folder):
        submission = Submission(file)
        try:
            if file.unread:
                raise ValueError(file.unread)
            submission.notebook = read(file.data)
        except ValueError as error:
            submission.remarks.append(str(error))
        except Exception as error:  # whatever it is, the others are read all the same
            submission.remarks.append(f"{type(error).__name__}: {error}")
        submissions.append(submission)
    return submissions


def class_seed(submissions: list[Submission]) -> int:
    """The seed that more than half of the students were handed out, each of whom has one vote.

    Raises:
        GradingError: there is none, and the instructor has to say it.
    """
    files = [submission.file for submission in submissions if submission.notebook]
    student_of = students(files, dict.fromkeys(files, ""))
    seeds_of: dict[Student, Counter[int]] = {}
    for submission in submissions:
        if submission.notebook and (seed := seed_of(submission.notebook)) is not None:
            seeds_of.setdefault(student_of[submission.file], Counter())[seed] += 1
    votes = Counter(seeds.most_common(1)[0][0] for seeds in seeds_of.values())
    if not votes:
        return 0
    seed, count = votes.most_common(1)[0]
    if 2 * count <= votes.total():
        said = ", ".join(f"{seed} ({n} students)" for seed, n in votes.most_common(5))
        raise GradingError(
            f"No CLASS_SEED is shared by more than half of the notebooks: {said}. "
            "Say which one the class was given: make grade CLASS_SEED=2027 …"
        )
    print(f"The class's seed is {seed}, as with {count} of {votes.total()} students.")
    return seed


def identify(
    submissions: list[Submission],
    releases: dict[str, NotebookNode],
    only: str | None,
    student: str = "",
) -> list[Submission]:
    """Find each notebook's assignment and student, and which of a student's files is graded.

    only: the one assignment that is graded, where it is one.
    student: whose all files are, where they are one student's.

    Where no LMS has named the files, those of a student have one outermost name, or none is graded.

    Returns:
        The submissions without what a student put beside a notebook, such as a picture. Those that
        are not graded have lost their notebook, and a remark says why.
    """
    for submission in submissions:
        if submission.notebook is None:
            continue
        try:
            submission.assignment = recognise(submission.notebook, releases)
        except Exception as error:  # as in take_in
            submission.notebook = None
            submission.remarks.append(str(error))
    files = [submission.file for submission in submissions]
    assignment_of = {s.file: s.assignment for s in submissions if s.assignment}
    student_of, drop = students(files, assignment_of), common_folder(files, assignment_of)
    same_student = {}
    for submission in submissions:
        identity = Student(student, student) if student else student_of[submission.file]
        submission.identity = identity
        if only and submission.assignment not in ("", only):
            submission.notebook = None
            submission.remarks.append(f"this is {submission.assignment}, and {only} was graded")
        elif submission.notebook:
            key = submission.student, submission.assignment
            same_student.setdefault(key, []).append(submission)
    for rivals in same_student.values():
        names = sorted({rival.file.parts[drop] for rival in rivals})
        if len(names) > 1 and not (student or all(rival.identity.lms for rival in rivals)):
            for rival in rivals:  # any of them may be somebody else's, who wants to take its place
                rival.notebook = None
                rival.remarks.append(
                    f"by their names {' and '.join(f'`{name}`' for name in names)} are one "
                    f"student's, {rival.student}: rename one, or take it away"
                )
            continue
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
    with_notebook = {submission.student for submission in submissions if submission.assignment}
    return [
        s for s in submissions
        if s.assignment or is_meant(s) or s.student not in with_notebook
    ]  # fmt: skip


def is_meant(submission: Submission) -> bool:
    """Whether a file that is no notebook was meant to be one."""
    return ".ipynb" in submission.file.parts[-1].lower()


def read(data: bytes) -> NotebookNode:
    """The notebook, with its cells' sources, nbgrader's metadata and pictures, and no more.

    Raises:
        ValueError: why it is none, in words.
    """
    if not data.strip():
        raise ValueError("the file is empty")
    if len(data) > LARGEST:
        raise ValueError(
            f"the file has {len(data) / 2**20:.0f} MB, and at most {LARGEST // 2**20} are read"
        )
    if data.startswith(b"%PDF"):
        raise ValueError("this is a PDF, not a notebook")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("this is not a notebook: it is not text") from None
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        why = f"it breaks off or is damaged in line {error.lineno} ({error.msg})"
        if not text.lstrip().startswith("{"):
            why = "it is not the file that Jupyter saves"
        raise ValueError(f"this does not parse as a notebook: {why}") from None
    except RecursionError:
        raise ValueError("this does not parse as a notebook: it is nested too deeply") from None
    if not isinstance(raw, dict) or not ("cells" in raw or "worksheets" in raw):
        raise ValueError("this is not a notebook: it has no cells")
    try:
        sheets = [raw, *raw.get("worksheets", [])]
        count = sum(len(sheet.get("cells", [])) for sheet in sheets)
        kept = nbformat.reads(needed(raw, sheets), as_version=4).cells if count <= CELLS else []
        cells = [clean(cell, number) for number, cell in enumerate(kept, start=1)]
        notebook = new_notebook(
            cells=cells,
            metadata={
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"},
            },
        )
    except Exception as error:  # nbformat takes for granted what a hand-edited file may lack
        raise ValueError(
            f"this does not parse as a notebook: {type(error).__name__}, {error}"
        ) from None
    if count > CELLS:
        raise ValueError(f"it has {count} cells, and at most {CELLS} are read")
    return notebook


def needed(raw: dict, sheets: list[dict]) -> str:
    """A notebook's text without what is not read, and without halves of signs, which none can be.

    Its outputs, and what programs keep beside the cells, may be of any size.

    sheets: what holds its cells, the notebook itself or, in an old format, parts of it.
    """
    for sheet in sheets:
        for cell in sheet.get("cells", []):
            if "outputs" in cell:
                cell["outputs"] = []
    raw["metadata"] = {}
    text = json.dumps(raw, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def clean(cell: NotebookNode, number: int) -> NotebookNode:
    source = cell.source if isinstance(cell.source, str) else "".join(cell.source)
    cleaned = NEW_CELL[cell.cell_type](source, id=f"cell-{number}")
    if name := grade_id(cell):
        cleaned.metadata.nbgrader = {"grade_id": name}
    if "attachments" in cell:
        cleaned.attachments = cell.attachments
    return cleaned


def recognise(notebook: NotebookNode, releases: dict[str, NotebookNode]) -> str:
    """The assignment of a notebook, by nbgrader's names of its cells and the text of its tests.

    A cell that has lost its metadata and still holds the text of a locked cell gets its name back.

    Raises:
        ValueError: it is none of these.
    """
    texts = {
        cell.source.strip(): (name, grade_id(cell))
        for name, release in releases.items()
        for cell in release.cells
        if is_test(cell)
    }
    by_text = [
        texts[cell.source.strip()] for cell in notebook.cells if cell.source.strip() in texts
    ]
    names = {grade_id(cell) for cell in notebook.cells} - {None, SEED_CELL}
    score = {
        name: len(names & named_cells(release).keys())
        + sum(theirs == name for theirs, _ in by_text)
        for name, release in releases.items()
    }
    best = max(score, key=score.get)
    if not score[best]:
        raise ValueError(
            f"this is not one of the assignments: its cells are called {', '.join(sorted(names))}"
            if names
            else "this is not the notebook that was handed out, or it was saved by a program that "
            "drops what nbgrader knows of the cells"
        )
    for cell in notebook.cells:
        name, test = texts.get(cell.source.strip(), ("", ""))
        if name == best and grade_id(cell) is None:
            cell.metadata.nbgrader = {"grade_id": test}
    return best


def seed_of(notebook: NotebookNode) -> int | None:
    """The class's seed that a notebook was handed out with."""
    for cell in notebook.cells:
        if grade_id(cell) == SEED_CELL and (match := SEED.search(cell.source)):
            digits = match[1].lstrip("0")[: len(str(LARGEST_SEED)) + 1]  # int() refuses thousands
            return seed if (seed := int(digits or "0")) <= LARGEST_SEED else None
    return None
