"""A feedback page says what each task came to, on a phone too.

It runs nothing and asks no other host, whatever the student's code has shown.
"""

import html
import re
from html.parser import HTMLParser

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell
from playwright.sync_api import sync_playwright

from assignments.grade import grade
from assignments.lms.files import as_html
from assignments.report import first_line, no_formula, printable, unbroken, write_csv
from assignments.sandbox import landlock
from attention.checks.result import Result
from tests.assignments.submissions import reference_answers, source, submission
from tools.chromium import CHROMIUM_ARGUMENTS, find_chromium

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
display(Markdown("[a](javascript:alert(11)) ![](https://example.invalid/q.png) **strong**"))
pixel = {"image/png": "iVBORw0KGgo="}
display(pixel, raw=True, metadata={"image/png": {"width": "1 onload=alert(20)"}})
"""
TEXT = """<script>alert(9)</script><img src=x onerror=alert(10)>

[my sketch](javascript:alert(12)) [mine](<java\tscript:alert(13)>) [theirs](https://example.invalid)
[data](data:text/html;base64,PHNjcmlwdD4=) <a href="&#106;avascript:alert(14)">a</a> [file](f.html)
![](https://example.invalid/r.png) ![](//example.invalid/s.png)
![](data:image/svg+xml;base64,PHN2Zz4=)
![](data:image/png;base64,iVBORw0KGgo=) ![](attachment:pixel.png) ![gone](attachment:gone.png)
<img src="https://example.invalid/t.png"><p style="background: url(//example.invalid/u.png)">

&#91;twice](javascript:alert(15)) `[twice](javascript:alert(16))` \\[twice\\](javascript:alert(17))

$a_i b_i$ and *words*

- item

      [in code](javascript:alert(18))


      [later](javascript:alert(19))
"""
PIXEL = "iVBORw0KGgo="
WRONG = {
    "copy-weights": "def copy_weights(theirs, mine):\n    pass",
    "torch-mask": "def torch_mask(mask):\n    return mask",
    "keys-in-use": "raise NotImplementedError()",
}
EXPLAINED = "Because a < b. <script>alert(8)</script> ![](https://example.invalid/p.png)"
pytestmark = pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def check_addresses(elements):
    """No link but to the web, by mail or within the page; no picture from anywhere else."""
    for tag, attributes in elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        link, picture = attributes.get("href", "#"), attributes.get("src", "data:image/png;")
        assert re.match(r"https?://|mailto:|#", link), (tag, attributes)
        assert re.match(r"data:image/(png|jpeg|gif|webp);", picture), (tag, attributes)
        assert "url(" not in attributes.get("style", "")


def check_page(page):
    elements = Elements(page).tags
    tags = {tag for tag, _ in elements}
    assert not tags & {"script", "iframe", "object", "embed", "link", "form", "base", "svg"}, tags
    check_addresses(elements)
    policy = [a["content"] for _, a in elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policy) == 1 and policy[0].startswith("default-src 'none'")
    assert [tag for tag, _ in elements[:3]] == ["html", "head", "meta"]
    assert elements[2][1].get("content") == policy[0]  # before anything that it forbids
    styles = "".join(re.findall(r"<style.*?</style>", page, re.DOTALL))
    assert not re.search(r"@import|url\((?!['\"]?(data:|#))", styles)


@pytest.fixture(scope="module")
def graded(released, tmp_path_factory):
    """Ada answers all, with active content beside it; Bob makes three mistakes.

    Eve patches in cells that begin as the set-up does, and her package was published elsewhere.
    """
    folder = tmp_path_factory.mktemp("graded")
    notebook = nbformat.read(released / f"{NAME}.ipynb", as_version=4)
    ada = submission(notebook, reference_answers(source(NAME)) | {"explain": EXPLAINED})
    ada.cells.insert(3, new_code_cell(ACTIVE))
    ada.cells.insert(4, new_markdown_cell(TEXT, attachments={"pixel.png": {"image/png": PIXEL}}))
    (folder / "in").mkdir()
    nbformat.write(ada, folder / "in" / "ada.ipynb")
    bob = submission(notebook, reference_answers(source(NAME)) | WRONG)
    nbformat.write(bob, folder / "in" / "bob.ipynb")
    eve = submission(notebook, {})
    setup = eve.cells[1]
    setup.source = re.sub("(?m)^PUBLISHED = .*$", 'PUBLISHED = "https://a@b"', setup.source)
    forged = [new_code_cell(setup.source + "\nforged = 1")]
    forged.append(new_code_cell(first_line(eve.cells[2]) + '\nPUBLISHED = "" or "forged"'))
    eve.cells[3:3] = forged
    nbformat.write(eve, folder / "in" / "eve.ipynb")
    grade(folder / "in", folder / "grades")
    return folder


def test_the_pages_run_nothing(graded):
    page = (graded / "grades/feedback/ada" / NAME / f"{NAME}.html").read_text("utf-8")
    check_page(page)
    assert "<b>bold</b>" in page and "a &lt; b" in page
    assert "<em>words</em>" in page and "<strong>strong</strong>" in page and "$a_i b_i$" in page
    assert page.count(f"data:image/png;base64,{PIXEL}") == 3 and "gone" in page
    assert 'href="https://example.invalid"' in page


def test_what_formgrader_shows_runs_nothing(graded):
    """It shows these, by nbconvert, to somebody who is logged in."""
    kept = nbformat.read(graded / "grades/autograded/ada" / NAME / f"{NAME}.ipynb", as_version=4)
    for cell in kept.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            assert not {"application/javascript", "image/svg+xml"} & data.keys()
    elements = Elements(HTMLExporter(template_name="basic").from_notebook_node(kept)[0]).tags
    assert not {"script", "iframe", "form", "object"} & {tag for tag, _ in elements}
    check_addresses(elements)
    assert ("em", {}) in elements and ("strong", {}) in elements


@pytest.mark.parametrize("student", ["ada", "bob"])
def test_hidden_tests_are_not_in_them(graded, student):
    path = graded / "grades/autograded" / student / NAME / f"{NAME}.ipynb"
    sources = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    hidden = re.findall(r"### BEGIN HIDDEN TESTS\n(.*?)### END", sources, re.DOTALL)
    assert len(hidden) == 4
    page = (graded / "grades/feedback" / student / NAME / f"{NAME}.html").read_text("utf-8")
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    visible = re.sub(r"### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", "", sources, flags=re.DOTALL)
    alone = {*"".join(hidden).splitlines()} - {*visible.splitlines()}
    assert len(alone) > 10 and not alone & {*text.splitlines()}


def test_what_only_begins_as_the_setup_is_not_folded_away(graded):
    page = (graded / "grades/feedback/eve" / NAME / f"{NAME}.html").read_text("utf-8")
    shown, folded = (
        re.sub(r"<[^>]*>", "", html.unescape(part))
        for part in (
            re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL),
            "".join(re.findall(r"<details>(?:(?!</details>).)*", page, re.DOTALL)),
        )
    )
    assert "forged = 1" in shown and 'or "forged"' in shown and "forged" not in folded
    assert "https://a@b" in folded and folded.count("Set-up") == 2
    remarks = re.findall("(cell .*) begins as the set-up does, and is not what was", shown)
    assert remarks == ["cell 4", "cell 5"]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
        )
        yield browser
        browser.close()


@pytest.fixture
def bobs_page(graded, browser):
    """Opens the page of Bob, who made mistakes."""
    address = (graded / "grades/feedback/bob" / NAME / f"{NAME}.html").as_uri()
    contexts = []

    def open_page(**options):
        # a page under its own policy takes no script, and axe is one
        contexts.append(browser.new_context(bypass_csp=True, **options))
        page = contexts[-1].new_page()
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_each_task_has_its_name_its_points_and_its_words(bobs_page):
    page = bobs_page()
    tasks = [item.inner_text().split("\n", 2) for item in page.locator(".tasks li").all()]
    assert [(name, points) for name, points, *_ in tasks] == [
        ("1. From memory", "4 of 4"),
        ("2. The same weights", "0 of 4"),
        ("3. The same masks", "0 of 4"),
        ("4. How many keys?", "0 of 3"),
        ("5. Explain the map", "– of 5"),
    ]
    words = [" ".join(rest) for _, _, *rest in tasks]
    assert "positional argument" in words[2] and "NameError: name" in words[3]
    assert words[1] and not words[0] and not words[4]
    assert page.locator("h1").inner_text() == "Assignment 6: Equal to torch's, and explained"
    assert "4 of 20 points" in page.locator("header").inner_text()
    for link in page.locator(".tasks a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    shown = page.locator("main").inner_text()
    assert "def torch_mask" in shown and "PUBLISHED" not in shown and "CLASS_SEED = " not in shown
    page.locator("summary", has_text="Set-up").first.click()
    assert "PUBLISHED" in page.locator("main").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_everybody_can_read_it(bobs_page, theme, width):
    page = bobs_page(color_scheme=theme, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for summary in page.locator("summary").all():
        summary.click()
    found = Axe().run(page).response["violations"]
    assert not found, [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 18, 18)"}[theme]


def test_paragraphs_are_put_together_again():
    long = "word " * 30 + "end."
    result = Result("check_x", False, (long, "Short.", f"Before `{'x' * 60}` and after."))
    text = unbroken(repr(result))
    assert text.splitlines() == ["check_x: not yet.", *result.paragraphs]


@pytest.mark.parametrize("sign", "=+-@＝＋－＠")
@pytest.mark.parametrize(
    "before", ["", "\t", "\n", "\r", "a;", "a; ", 'a;"', "a\t", "a\n", "a\r\n", "=a;"]
)
def test_a_spreadsheet_computes_nothing(sign, before):
    """Where its list separator is a semicolon, it cuts a cell there, and at each end of a line."""
    for piece in re.split(r"[;\t\r\n]", no_formula(f"{before}{sign}HYPERLINK()")):
        assert not re.match(r'[\s"]*[=+\-@＝＋－＠]', piece)


def test_words_stay_as_they_are():
    for text in ("ada", "a=b; c-d", "x, -1", "1-projection", "ada@example.org"):
        assert no_formula(text) == text
    assert no_formula("=HYPERLINK()") == "'=HYPERLINK()"


def test_a_terminal_shows_what_is_printed_and_obeys_none_of_it():
    name = "\x1b[2Ja\x9b31m\r\n\x07\u202egnp.\u2066b\u2028\x00c\x7f ä → 日本"
    shown = printable(name)
    assert shown.isprintable() and shown.endswith(" ä → 日本")
    assert "\\x1b[2Ja" in shown and "\\u202e" in shown
    assert printable("[1/2] ada.ipynb: 20 of 20") == "[1/2] ada.ipynb: 20 of 20"


def test_a_table_that_a_terminal_shows_is_obeyed_as_little(tmp_path):
    row = {"student": "山田\u3000太郎", "file": "\x1b[2Ja\x9b31m\u202e.ipynb", "reason": "\t=1+1"}
    write_csv([row], tmp_path / "grades.csv", list(row))
    text = (tmp_path / "grades.csv").read_text("utf-8-sig")
    assert text.splitlines()[1] == "山田\u3000太郎,\\x1b[2Ja\\x9b31m\\u202e.ipynb,\\t=1+1"


@pytest.mark.parametrize("comment", ["=1+1", "a;=1+1", "a<=1", 'x & "=1', "&;==-1", "a\n=1", "＝1"])
def test_a_comment_for_the_lms_computes_nothing(comment):
    written = as_html(comment)
    assert html.unescape(written.replace("<br>", "\n")) == comment
    for piece in re.split(r"[;\t\r\n]", written):
        assert not re.match(r'[\s"]*[=+\-@＝＋－＠]', piece)
