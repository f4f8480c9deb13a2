"""What a run is reported as: remarks and messages, a page for the student, a row of the CSV.

The page is nbgrader's, made safe to open and to pass on. It needs no other host and runs no script:
what the student's code has shown is data.
"""

import csv
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import nbgrader.server_extensions.formgrader as formgrader
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import ClearHiddenTests, GetGrades

from assignments import gradebook
from assignments.course import cell_name, grade_id, is_test
from assignments.intake.notebooks import Submission
from assignments.sandbox.run import NOT_GRADED

COLUMNS = [
    *("student", "assignment", "file", "status", "points", "out_of", "by_hand"),
    *("reason", "feedback"),
]
MESSAGE = 200  # characters of a message that a row has room for
SCRIPT = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
FONT = re.compile(r"@font-face\s*\{[^}]*\}")  # of icons that the page does not show
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:\">"
)


def raised(notebook: NotebookNode) -> list[str]:
    """Which cells that are no tests raised an error, other than what is still to be written."""
    return [
        on_one_line(f"{cell_name(notebook, index)} raised {error.ename}: {error.evalue}")
        for index, cell in enumerate(notebook.cells)
        if not is_test(cell) and (error := error_of(cell))
        and error.ename not in ("NotImplementedError", "NotYet", "AssertionError", NOT_GRADED)
    ]  # fmt: skip


def failed(notebook: NotebookNode) -> dict[str, str]:
    """What the tests said that failed, by their names, without the check's name and verdict."""
    return {
        grade_id(cell): re.sub(r"^\w+: not yet\.\s+", "", error.evalue) or error.ename
        for cell in notebook.cells
        if is_test(cell) and (error := error_of(cell))
    }


def error_of(cell: NotebookNode) -> NotebookNode | None:
    return next((o for o in cell.get("outputs", []) if o.output_type == "error"), None)


def on_one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MESSAGE else text[:MESSAGE] + " …"


@cache
def exporter() -> HTMLExporter:
    folder = Path(formgrader.__file__).parent
    html = HTMLExporter(
        template_name="feedback",
        extra_template_basedirs=[str(folder / "templates")],
        extra_template_paths=[str(folder / "static/node_modules/bootstrap/dist/css")],
        sanitize_html=True,
    )
    # The marks are this class's; the hidden tests are the next one's too.
    for preprocessor in (GetGrades, ClearHiddenTests, CSSHTMLHeaderPreprocessor):
        html.register_preprocessor(preprocessor, enabled=True)
    return html


def write_page(submission: Submission, notebook: NotebookNode, root: Path) -> None:
    """The page of a graded notebook, with the remarks above the first cell."""
    if submission.remarks:
        remarks = "".join(f"\n- {remark}" for remark in submission.remarks)
        cell = new_markdown_cell(f"**About the file that you handed in**\n{remarks}", id="remarks")
        notebook.cells.insert(0, cell)
    resources = gradebook.resources_of(submission, root)
    html, _ = exporter().from_notebook_node(notebook, resources=resources)
    html = FONT.sub("", SCRIPT.sub("", html))
    path = root / "feedback" / submission.student / submission.assignment
    path.mkdir(parents=True, exist_ok=True)
    (path / f"{submission.assignment}.html").write_text(
        html.replace("<head>", f"<head>{POLICY}", 1), "utf-8"
    )


def row_of(submission: Submission, root: Path) -> dict[str, str]:
    """A row of the CSV: what is known of the file, and the points of its test cells."""
    row = {
        "student": submission.student,
        "assignment": submission.assignment,
        "file": submission.file.name,
        "status": "not graded",
        "reason": submission.reason,
        "feedback": "; ".join(
            on_one_line(f"`{test}`: {words}") for test, words in submission.feedback.items()
        ),
    }
    return row | gradebook.marks(submission, root) if submission.graded else row


def write_csv(rows: Iterable[dict[str, str]], path: Path) -> None:
    cells = dict.fromkeys(key for row in rows for key in row if key not in COLUMNS)
    with path.open("w", encoding="utf-8-sig", newline="") as file:  # the mark tells a spreadsheet
        table = csv.DictWriter(file, [*COLUMNS, *cells])
        table.writeheader()
        for row in rows:
            table.writerow({column: no_formula(text) for column, text in row.items()})


def no_formula(text: str) -> str:
    """A spreadsheet computes what begins like a formula, and students choose names."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
