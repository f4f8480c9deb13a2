"""nbgrader's gradebook and folders: what was handed in, the marks of a run, and those by hand."""

from copy import deepcopy
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import CheckCellMetadata, LimitOutput, OverwriteCells, SaveAutoGrades

from assignments.cleaned import clean_outputs, clean_texts, cut_cells
from assignments.course import is_test, settings
from assignments.intake.notebooks import Submission


def register(submission: Submission, root: Path) -> bool:
    """Keep a submission's file and student. Returns whether the very same file was here before."""
    name, student = submission.assignment, submission.student
    path = root / "submitted" / student / name / f"{name}.ipynb"
    again = path.exists() and path.read_bytes() == submission.file.data
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(submission.file.data)
    with open_gradebook(root) as gradebook:
        gradebook.update_or_create_student(student)
        gradebook.update_or_create_submission(name, student)
    return again


def resources_of(submission: Submission, root: Path) -> dict:
    """What nbgrader's preprocessors read beside the notebook."""
    name = submission.assignment
    return {
        "unique_key": name,
        "metadata": {"name": name},
        "nbgrader": {
            "student": submission.student,
            "assignment": name,
            "notebook": name,
            "db_url": settings(root).CourseDirectory.db_url,
        },
    }


def with_hidden_tests(submission: Submission, root: Path) -> NotebookNode:
    """The notebook with every locked cell as it is in the source."""
    notebook, resources = submission.notebook, resources_of(submission, root)
    for preprocessor in (OverwriteCells(), CheckCellMetadata()):
        notebook, resources = preprocessor.preprocess(notebook, resources)
    return notebook


def keep_marks(
    submission: Submission, notebook: NotebookNode, root: Path, again: bool
) -> NotebookNode:
    """Put the points of a notebook that was run into the gradebook, and keep it for formgrader.

    again: whether this file was graded before; then its marks by hand need no second look.

    Returns:
        The notebook, whose outputs can be shown; its texts are as the student wrote them, as far as
        they are not too long to be laid out.
    """
    count_errors_alone(notebook)
    resources = resources_of(submission, root)
    for preprocessor in (
        *(ClearMetadataPreprocessor(preserve_cell_metadata_mask={"nbgrader"}), LimitOutput()),
        SaveAutoGrades(),
    ):
        notebook, resources = preprocessor.preprocess(notebook, resources)
    clean_outputs(notebook)
    cut_cells(notebook)
    name, student = submission.assignment, submission.student
    if again:
        with open_gradebook(root) as gradebook:
            for grade in gradebook.find_submission_notebook(name, name, student).grades:
                if grade.manual_score is not None:
                    grade.needs_manual_grade = False
            gradebook.db.commit()
    path = root / "autograded" / student / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = deepcopy(notebook)
    clean_texts(kept)  # formgrader shows it to somebody who is logged in
    nbformat.write(kept, path)
    submission.graded = True
    return notebook


def count_errors_alone(notebook: NotebookNode) -> None:
    """Leave a test's errors as all that nbgrader reads points from.

    It takes what is on stderr for an error, and a number that is shown for the points. No test
    shows one; what an answer shows while it is tested is not the test's.
    """
    for cell in filter(is_test, notebook.cells):
        for output in cell.outputs:
            if output.output_type == "stream":
                output.name = "stdout"
            elif output.output_type == "execute_result":
                output.output_type = "display_data"
                output.pop("execution_count", None)  # which only a result has
            elif output.output_type == "error" and output.ename == "AssertionError":
                # The words are for the learner, the lines around them may be hidden tests.
                output.traceback = [output.evalue or "AssertionError"]


def marks(submission: Submission, root: Path) -> dict[str, str]:
    """The points of a graded submission and of each of its cells, as a row of the CSV has them."""
    name = submission.assignment
    with open_gradebook(root) as gradebook:
        marked = gradebook.find_submission_notebook(name, name, submission.student)
        by_hand = [grade.name for grade in marked.grades if grade.needs_manual_grade]
        return {
            "status": "to be graded by hand" if by_hand else "graded",
            "points": f"{marked.score:g}",
            "out_of": f"{marked.max_score:g}",
            "by_hand": " ".join(by_hand),
        } | {
            grade.name: "" if grade.needs_manual_grade else f"{grade.score:g}"
            for grade in marked.grades
        }


def comments(submission: Submission, root: Path) -> dict[str, str]:
    """What was written to the student by hand, by the names of the cells."""
    name = submission.assignment
    with open_gradebook(root) as gradebook:
        marked = gradebook.find_submission_notebook(name, name, submission.student)
        return {each.name: each.manual_comment for each in marked.comments if each.manual_comment}


def open_gradebook(root: Path) -> Gradebook:
    return Gradebook(settings(root).CourseDirectory.db_url, "attention")


def write_settings(root: Path) -> None:
    """What formgrader reads when Jupyter is started in this folder.

    The folder itself it finds there, under another path too: graded in a container, or moved.
    """
    course = settings(root).CourseDirectory.course_id
    (root / "nbgrader_config.py").write_text(f"c.CourseDirectory.course_id = {course!r}\n", "utf-8")
