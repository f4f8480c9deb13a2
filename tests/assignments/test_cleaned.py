"""What a student wrote becomes HTML that can be shown, in a time that has a limit."""

import html
import re
from time import monotonic

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from assignments.cleaned import (
    LONGEST,
    SHOWN,
    clean,
    clean_texts,
    cut_cells,
    from_markdown,
    text_cell,
)
from assignments.report import exporter

PIECES = [
    *(" ", "\n", "[", "![", "](", "[a](", "` `` ", "$a ", "*a _b ", "**a*", "~~a~", "&", "\\"),
    *("<", "<a ", "<b>", "<b><p>", "<div>\n", "<table>", "<!--", "<![CDATA[", "> ", "- ", "|a"),
    *("[a]: b\n", "\\begin{a}", "|a|\n|-|\n", "\t", "\xa0"),
]
PIXEL = "iVBORw0KGgo="


@pytest.mark.parametrize("piece", PIECES)
def test_five_megabytes_take_seconds(piece):
    start = monotonic()
    shown = from_markdown("words " + piece * (5_000_000 // len(piece)))
    assert monotonic() - start < 10
    assert "words" in shown and len(shown) < 20 * LONGEST


GROWS = {
    "rows that are filled up": "words " + "|a" * 500 + "|\n" + "|-" * 501 + "|\n" + "a\n" * 1000,
    "the same on an old Mac": "words " + "|a" * 500 + "|\r" + "|-" * 501 + "|\r" + "a\r" * 1000,
    "elements left open": "<p>words" + "".join(f"<b a={i}>" for i in range(1000)) + "<p>x" * 1000,
    "a long title left open": f"<p>words<b title={'x' * 9000}>" + "<p>x" * 2500,
    "a long title around": f"words<b title={'x' * 9000}>" + "<div>" * 1800 + "</b>" * 400,
}


@pytest.mark.parametrize("show", [from_markdown, clean])
@pytest.mark.parametrize("text", GROWS.values(), ids=GROWS)
def test_a_short_text_does_not_become_large(text, show):
    """What a parser adds to it: half a million cells or elements took half a minute, and 2 GB."""
    start = monotonic()
    shown = show(text)
    assert monotonic() - start < 5
    assert "words" in shown and len(shown) < 5 * LONGEST


def test_a_text_whose_tables_are_not_laid_out_says_so():
    shown = from_markdown("<b>" + GROWS["rows that are filled up"])
    assert "too large to be laid out" in shown and "&lt;b&gt;words |a|a" in shown


def test_a_table_is_laid_out():
    shown = from_markdown("|a|b|\n|-|-|\n|<b>c|\n")
    assert shown.count("<td>") == 2 and "<td><b>c</b></td>" in shown


def test_what_is_left_open_ends_with_what_it_stands_in():
    assert clean("<p><b>a<i>b</b>c</i><p>d") == "<p><b>a<i>b</i></b>c</p><p>d</p>"


@pytest.mark.parametrize("text", ["word " * LONGEST, "<b>" + "word " * LONGEST])
def test_a_long_text_says_that_it_was_cut(text):
    for shown in (from_markdown(text), clean(text)):
        assert "the rest is cut off, after 20,000 characters" in shown


@pytest.mark.parametrize(
    "attachments",
    [
        *(None, {}, [], "x", {"p.png": None}, {"p.png": []}, {"p.png": {}}),
        *({"p.png": {"image/png": 3}}, {"p.png": {"image/svg+xml": "PHN2Zz4="}}),
        {"p.png": {"text/html": "x"}},
        {"p.png": {'image/png;base64,x" onerror="alert(1)': "x"}},
    ],
)
def test_a_picture_that_is_missing_leaves_its_name(attachments):
    cell = new_markdown_cell("before ![my sketch](attachment:p.png) after")
    if attachments is not None:
        cell.attachments = attachments
    shown = text_cell(cell)
    assert "before" in shown and "my sketch" in shown and "after" in shown
    assert "<img" not in shown or 'src="data:image/png;base64,3"' in shown
    assert "onerror" not in shown


def test_a_page_of_long_cells_takes_seconds():
    """A colourer of code takes minutes for five megabytes, and hours for the wrong five."""
    cells = [new_code_cell(piece * (5_000_000 // len(piece))) for piece in ("x=1;", "(", "'", "a")]
    start = monotonic()
    page, _ = exporter().from_notebook_node(
        new_notebook(cells=[new_markdown_cell("<b>" * LONGEST), *cells]),
        resources={"page": {"results": []}},
    )
    assert monotonic() - start < 20
    assert re.sub(r"<[^>]*>", "", page).count("the rest is cut off") == 5


def test_of_many_cells_as_much_is_kept_as_can_be_laid_out():
    cells = [new_code_cell("#\n" + "a=" * 4999) for _ in range(100)]
    test = new_code_cell("assert", metadata={"nbgrader": {"grade": True, "locked": True}})
    notebook = new_notebook(cells=[*cells, test])
    cut_cells(notebook)
    assert sum(len(cell.source) for cell in cells) < SHOWN + 100 * 100
    assert [cell.source for cell in cells[:20]] == ["#\n" + "a=" * 4999] * 20
    assert test.source == "assert" and "not shown" in cells[-1].source


def test_an_attached_picture_is_shown():
    bundle = {"my sketch.png": {"image/png": [PIXEL[:5], PIXEL[5:]]}}
    cell = new_markdown_cell("![](<attachment:my sketch.png>)", attachments=bundle)
    assert f'src="data:image/png;base64,{PIXEL}"' in text_cell(cell)


def test_an_attached_picture_is_shown_once():
    """It may have megabytes, and a text can name it a thousand times, and write it variously."""
    cell = new_markdown_cell(
        "![one](attachment:p.png) ![two](attachment:%70.png)\n\n![](attachment:p.png)",
        attachments={"p.png": {"image/png": PIXEL}},
    )
    shown = text_cell(cell)
    assert shown.count(PIXEL) == 1
    assert "shown above: two" in shown and "shown above: without a name" in shown


@pytest.mark.parametrize("form", ["${}$", "$${}$$", "\\\\({}\\\\)"])
def test_no_formula_is_a_link(form):
    """Formgrader's MathJax makes one of it, to any address."""
    cell = new_markdown_cell(form.format(r"\href{javascript:alert(1)}{x} + \hrefs"))
    clean_texts(new_notebook(cells=[cell]))
    shown = html.unescape(cell.source)
    assert r"\href{" not in shown and "href{javascript" in shown and r"\hrefs" in shown


@pytest.mark.parametrize("command", ["href", "url", "class", "style", "cssId", "require"])
def test_no_command_of_mathjax_is_left(command):
    """Each of these makes a link, an attribute or a script's address of what it is given."""
    cell = new_markdown_cell(rf"$\{command}{{position: fixed}}{{x}} + \alpha$")
    clean_texts(new_notebook(cells=[cell]))
    shown = html.unescape(cell.source)
    assert rf"\{command}" not in shown and command in shown and r"\alpha" in shown
