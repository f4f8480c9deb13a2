"""What a run is reported as: remarks and messages, a page for the student, a row of the CSV.

The page is safe to open and to pass on. It needs no other host and runs no script: what the
student's code has shown is data. `feedback_page/` is what it looks like.
"""

import csv
import html
import re
from functools import cache
from pathlib import Path
from typing import TextIO
from unicodedata import category

from nbconvert.exporters import HTMLExporter
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests
from pygments.formatters import HtmlFormatter

from assignments import gradebook
from assignments.cleaned import clean, cut, text_cell
from assignments.course import cell_name, grade_id, is_test, tasks, title
from assignments.intake.notebooks import Submission
from assignments.sandbox.client import NOT_GRADED

COLUMNS = [
    *("student", "assignment", "file", "status", "points", "out_of", "by_hand"),
    *("reason", "feedback"),
]
MESSAGE = 200  # characters of a message that a row has room for
WIDTH = 72  # columns to which a check breaks its words
SIGNS = r"=+\-@＝＋－＠"  # that begin a formula, the wide ones in a Chinese or Japanese spreadsheet
FORMULA = re.compile(rf'(^|[;\t\r\n])(?=[\s"]*[{SIGNS}])')
PUBLISHED = re.compile(r'^PUBLISHED = "[^"\\\n]*"$', re.MULTILINE)
Results = dict[str, dict[str, str]]  # by nbgrader's names of the graded cells
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


def unlike_setup(notebook: NotebookNode, release: NotebookNode) -> list[str]:
    """Which cells pass for the set-up that was handed out, and do something else."""
    setup = setup_of(release)
    return [
        f"{cell_name(notebook, index)} begins as the set-up does, and is not what was handed out"
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
        and setup.get(first_line(cell), as_handed_out(cell)) != as_handed_out(cell)
    ]


def setup_of(release: NotebookNode) -> dict[str, str]:
    """The set-up's cells by their first lines."""
    cells = [cell for cell in release.cells[:3] if cell.cell_type == "code"]
    return {first_line(cell): as_handed_out(cell) for cell in cells}


def as_handed_out(cell: NotebookNode) -> str:
    """A cell's source without the place of the package, which another release had elsewhere."""
    return PUBLISHED.sub('PUBLISHED = ""', cell.source.strip())


def failed(notebook: NotebookNode) -> dict[str, str]:
    """What the tests said that failed, by their names."""
    return {
        grade_id(cell): words_of(error)
        for cell in notebook.cells
        if is_test(cell) and (error := error_of(cell))
    }


def words_of(error: NotebookNode) -> str:
    """An error of a test, without the check's own name and verdict."""
    text = unbroken(re.sub(r"^\w+: not yet\.\s+", "", error.evalue))
    if error.ename in ("NotYet", "AssertionError", NOT_GRADED):
        return text or error.ename
    return f"{error.ename}: {text}"


def unbroken(text: str) -> str:
    """Words with their paragraphs' lines joined again, where a check broke them."""
    lines = [""]
    for line in text.strip().splitlines():
        first = re.match(r"`[^`]*`\S*|\S*", line)[0]
        if first and len(lines[-1].rpartition("\n")[2]) + 1 + len(first) > WIDTH:
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    return "\n".join(line.replace("\n", " ") for line in lines[1:])


def error_of(cell: NotebookNode) -> NotebookNode | None:
    return next((o for o in cell.get("outputs", []) if o.output_type == "error"), None)


def on_one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MESSAGE else text[:MESSAGE] + " …"


@cache
def exporter() -> HTMLExporter:
    page = HTMLExporter(
        template_name="feedback_page",
        extra_template_basedirs=[str(Path(__file__).parent)],
        filters={
            "in_words": in_words,
            "text_cell": text_cell,
            "clean": clean,
            "cut": cut,
            # A span for each change of colour would be twenty times the text; page.css shows none.
            "ansi2html": lambda text: html.escape(strip_ansi(text)),
        },
        exclude_anchor_links=True,
        exclude_output_prompt=True,
        sanitize_html=True,
    )
    page.register_preprocessor(ClearHiddenTests, enabled=True)  # they are the next class's too
    return page


def in_words(text: str) -> str:
    """A message as HTML: only what stands between backticks is marked up."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))


def code_style() -> str:
    light, dark = (
        HtmlFormatter(style=f"a11y-high-contrast-{ground}", nobackground=True)
        for ground in ("light", "dark")
    )
    return (
        light.get_style_defs(".highlight")
        + "@media (prefers-color-scheme: dark) {"
        + dark.get_style_defs(".highlight")
        + "}"
    )


def write_page(
    submission: Submission,
    notebook: NotebookNode,
    release: NotebookNode,
    results: Results,
    root: Path,
) -> None:
    """The page of a graded notebook. The notebook is changed: each cell is told what it is."""
    setup = setup_of(release)
    if first_line(notebook.cells[0]) == first_line(release.cells[0]):
        notebook.cells[0].source = "\n".join(notebook.cells[0].source.splitlines()[1:])
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and setup.get(first_line(cell)) == as_handed_out(cell):
            cell.metadata.kind = "setup"
        elif is_test(cell):
            cell.metadata.kind = "test"
            # the words stand in the result; a traceback could show a line of a hidden test
            cell.outputs = [output for output in cell.outputs if output.output_type != "error"]
        elif about.get("solution"):
            cell.metadata.kind = "answer"
        cell.metadata.result = results.get(grade_id(cell))
    marks = gradebook.marks(submission, root)
    page = {
        "policy": POLICY,
        "code_style": code_style(),
        "title": title(release),
        "student": submission.student,
        "points": marks["points"],
        "out_of": marks["out_of"],
        "waiting": marks["by_hand"],
        "results": list(results.values()),
        "remarks": submission.remarks,
    }
    text, _ = exporter().from_notebook_node(notebook, resources={"page": page})
    path = root / "feedback" / submission.student / submission.assignment
    path.mkdir(parents=True, exist_ok=True)
    (path / f"{submission.assignment}.html").write_text(text, "utf-8")


def first_line(cell: NotebookNode) -> str:
    return cell.source.strip().partition("\n")[0]


def results_of(submission: Submission, release: NotebookNode, root: Path) -> Results:
    """What each graded cell received, in the notebook's order: its task, points and words."""
    marks, comments = gradebook.marks(submission, root), gradebook.comments(submission, root)
    results, task_of = {}, tasks(release)
    for cell in release.cells:
        name, about = grade_id(cell), cell.metadata.get("nbgrader", {})
        if not about.get("grade"):
            continue
        points, out_of = marks[name], f"{about.points:g}"
        state = "waiting" if not points else {out_of: "full", "0": "none"}.get(points, "part")
        written = [text for other, text in comments.items() if task_of.get(other) == task_of[name]]
        results[name] = {
            "task": task_of[name],
            "anchor": f"task-{len(results) + 1}",
            "points": points,
            "out_of": out_of,
            "state": state,
            "message": submission.feedback.get(name, ""),
            "comment": "\n".join(written),
        }
    return results


def comment(submission: Submission, results: Results) -> str:
    """What a student reads beside the points in the LMS, a line for each thing there is to say."""
    lines = [
        f"{result['task']}: {result[words]}"
        for result in results.values()
        for words in ("message", "comment")
        if result[words]
    ]
    return "\n".join(" ".join(line.split()) for line in [*lines, *submission.remarks])


def row_of(submission: Submission, root: Path) -> dict[str, str]:
    """A row of the CSV: what is known of the file, and the points of its test cells."""
    row = {
        "student": submission.student,
        "assignment": submission.assignment,
        "file": submission.file.name,
        "status": "not graded",
        "reason": submission.reason,
        "feedback": "; ".join(
            on_one_line(f"`{name}`: {text}") for name, text in submission.feedback.items()
        ),
    }
    return row | gradebook.marks(submission, root) if submission.graded else row


def write_csv(rows: list[dict[str, str]], path: Path, columns: list[str] = COLUMNS) -> None:
    """Write rows with these columns and all others that a row has."""
    columns = list(dict.fromkeys([*columns, *(column for row in rows for column in row)]))
    with path.open("w", encoding="utf-8-sig", newline="") as file:  # the mark tells a spreadsheet
        table = csv.DictWriter(file, columns)
        table.writeheader()
        for row in rows:
            table.writerow({column: no_formula(printable(text)) for column, text in row.items()})


def no_formula(text: str) -> str:
    """A spreadsheet computes what begins like a formula, and students choose names.

    Where its list separator is a semicolon, it cuts there, quotation marks or not.
    """
    return FORMULA.sub(r"\1'", text)


def tell(*lines: str, to: TextIO | None = None) -> None:
    """Print lines that hold what a student chose: a name, an error's words."""
    print(*map(printable, lines), sep="\n", file=to, flush=True)


def printable(text: str) -> str:
    """A line for the terminal, which obeys what is no letter, number, space or sign to be seen."""
    return "".join(
        c if c.isprintable() or category(c) == "Zs" else c.encode("unicode_escape").decode()
        for c in text
    )
