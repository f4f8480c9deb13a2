"""A feedback page runs nothing and asks no other host, whatever the student's code has shown."""

import re
from html.parser import HTMLParser

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from assignments.grade import grade
from assignments.report import no_formula
from assignments.sandbox import landlock
from tests.assignments.conftest import source
from tests.assignments.submissions import reference_answers, submission

NAME = "6-capstone"
ACTIVE = """
import sys, warnings
from IPython.display import HTML, SVG, IFrame, Javascript, Markdown, display
display(HTML("<script>alert(1)</script><img src=x onerror=alert(2)><b>bold</b>"))
display(HTML("<iframe src='https://example.invalid'></iframe><a href='javascript:alert(3)'>a</a>"))
display(HTML("<style>@import url(https://example.invalid/a.css)</style><form action='//x'></form>"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(4)</script></svg>"))
display(Javascript("alert(5)"), IFrame("https://example.invalid", 1, 1))
display(Markdown("<script>alert(6)</script> <img src=x onerror=alert(7)>"))
"""
EXPLAINED = "Because a < b. <script>alert(8)</script> ![](https://example.invalid/p.png)"
pytestmark = pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def check_page(page):
    elements = Elements(page).tags
    tags = {tag for tag, _ in elements}
    assert not tags & {"script", "iframe", "object", "embed", "link", "form", "base", "svg"}, tags
    for tag, attributes in elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert not (attributes.get("href") or "").lower().strip().startswith("javascript")
    policy = [a["content"] for _, a in elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policy) == 1 and policy[0].startswith("default-src 'none'")
    assert [tag for tag, _ in elements[:3]] == ["html", "head", "meta"]
    assert elements[2][1].get("content") == policy[0]  # before anything that it forbids
    styles = "".join(re.findall(r"<style.*?</style>", page, re.DOTALL))
    assert not re.search(r"@import|url\((?!['\"]?(data:|#))", styles)


@pytest.fixture(scope="module")
def graded(released, tmp_path_factory):
    """Ada answers all, with active content beside it."""
    folder = tmp_path_factory.mktemp("graded")
    notebook = nbformat.read(released / f"{NAME}.ipynb", as_version=4)
    ada = submission(notebook, reference_answers(source(NAME)) | {"explain": EXPLAINED})
    ada.cells.insert(3, new_code_cell(ACTIVE))
    ada.cells.insert(4, new_markdown_cell("<script>alert(9)</script><img src=x onerror=alert(10)>"))
    (folder / "in").mkdir()
    nbformat.write(ada, folder / "in" / "ada.ipynb")
    grade(folder / "in", folder / "grades")
    return folder


def test_the_pages_run_nothing(graded):
    page = (graded / "grades/feedback/ada" / NAME / f"{NAME}.html").read_text("utf-8")
    check_page(page)
    assert "<b>bold</b>" in page and "a &lt; b" in page
    # formgrader shows these to somebody who is logged in
    kept = nbformat.read(graded / "grades/autograded/ada" / NAME / f"{NAME}.ipynb", as_version=4)
    for cell in kept.cells:
        shown = cell.source if cell.cell_type == "markdown" else ""
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            assert not {"application/javascript", "image/svg+xml"} & data.keys()
            shown += data.get("text/html", "") + data.get("text/markdown", "")
        assert not {"script", "iframe"} & {tag for tag, _ in Elements(shown).tags}


def test_hidden_tests_are_not_in_them(graded):
    page = (graded / "grades/feedback/ada" / NAME / f"{NAME}.html").read_text("utf-8")
    assert "HIDDEN TESTS" not in page
    autograded = (graded / "grades/autograded/ada" / NAME / f"{NAME}.ipynb").read_text("utf-8")
    assert "HIDDEN TESTS" in autograded


def test_a_spreadsheet_computes_nothing():
    assert no_formula("=HYPERLINK()") == "'=HYPERLINK()"
    assert no_formula("ada") == "ada"
