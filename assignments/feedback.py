"""A student's feedback: nbgrader's page, made safe to open and to pass on.

It needs no other host and runs no script: what the student's code has shown is data.
"""

import re
from functools import cache
from pathlib import Path

import nbgrader.server_extensions.formgrader as formgrader
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import ClearHiddenTests, GetGrades

SCRIPT = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
FONT = re.compile(r"@font-face\s*\{[^}]*\}")  # of icons that the page does not show
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:\">"
)


@cache
def exporter() -> HTMLExporter:
    theirs = Path(formgrader.__file__).parent
    made = HTMLExporter(
        template_name="feedback",
        extra_template_basedirs=[str(theirs / "templates")],
        extra_template_paths=[str(theirs / "static/node_modules/bootstrap/dist/css")],
        sanitize_html=True,
    )
    # The marks are this class's; the hidden tests are the next one's too.
    for preprocessor in (GetGrades, ClearHiddenTests, CSSHTMLHeaderPreprocessor):
        made.register_preprocessor(preprocessor, enabled=True)
    return made


def feedback(notebook: NotebookNode, resources: dict, remarks: list[str]) -> str:
    """The page of a graded notebook, with the remarks above the first cell.

    resources: what nbgrader's preprocessors read, see grade.py.
    """
    if remarks:
        told = "".join(f"\n- {remark}" for remark in remarks)
        cell = new_markdown_cell(f"**About the file that you handed in**\n{told}", id="remarks")
        notebook.cells.insert(0, cell)
    page, _ = exporter().from_notebook_node(notebook, resources=resources)
    page = FONT.sub("", SCRIPT.sub("", page))
    return page.replace("<head>", f"<head>{POLICY}", 1)
