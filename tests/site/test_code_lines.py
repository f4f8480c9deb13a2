"""Code and printed output in the window of a phone, and what a reader copies of them."""

import json
import re

import pytest

from book._ext.code_lines import COLOURLESS
from tests.site.conftest import BOOK

PHONE, A4 = 360, 658

# Of every block of code: its text, what a selection of it gives, and the lines too long for the
# window without an element to hang in.
CODE = """
() => {
  for (const fold of document.querySelectorAll("article details")) fold.open = true;
  const blocks = [...document.querySelectorAll("article .highlight:not(.cell_output *) pre")];
  return blocks.map(block => {
    const style = getComputedStyle(block);
    const ruler = block.appendChild(document.createElement("span"));
    ruler.textContent = "0".repeat(10);
    ruler.style.whiteSpace = "pre";
    const column = ruler.getBoundingClientRect().width / 10;
    ruler.remove();
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    const width = block.clientWidth - padding;
    const hung = new Set([...block.querySelectorAll(".hang")].map(line => line.textContent));
    getSelection().selectAllChildren(block);
    const code = block.cloneNode(true);
    for (const prompt of code.querySelectorAll(".gp")) prompt.remove();  // which nobody can select
    return {
      cell: Boolean(block.closest(".cell_input")),
      text: code.textContent,
      selected: getSelection().toString(),
      loose: block.textContent.split("\\n").filter(
        line => line.length * column > width && !hung.has(line)),
      scrolls: block.scrollWidth > block.clientWidth,
    };
  });
}
"""

# The lines that are wrapped, and how many columns deeper than their start what is wrapped stands.
WRAPPED = """
() => {
  for (const fold of document.querySelectorAll("article details")) fold.open = true;
  const wrapped = [];
  for (const line of document.querySelectorAll("article .hang")) {
    const range = document.createRange();
    const lefts = new Map();  // where the text of each row begins
    const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode())
      for (const {index} of text.data.matchAll(/\\S/g)) {
        range.setStart(text, index);
        range.setEnd(text, index + 1);
        const place = range.getBoundingClientRect();
        const row = Math.round(place.top + place.height / 2);
        lefts.set(row, Math.min(lefts.get(row) ?? Infinity, place.left));
      }
    const rows = [...lefts].sort(([one], [other]) => one - other);
    const [first, ...rest] = rows.map(([, left]) => left);
    const column = parseFloat(getComputedStyle(line).getPropertyValue("font-size")) * 0.6;
    if (rest.length) wrapped.push([line.textContent, ...rest.map(left => (left - first) / column)]);
  }
  return wrapped;
}
"""

# What is printed: the columns of the lines that may not wrap, the size of the letters, and whether
# they go over the edge.
PRINTED = """
() => [...document.querySelectorAll("article .cell_output .highlight pre")]
  .filter(output => output.checkVisibility()).map(output => ({
    columns: Math.max(...output.textContent.split("\\n").map(line => line.length).filter(
      length => ![...output.querySelectorAll(".hang")].some(
        hung => hung.textContent.length === length))),
    letters: parseFloat(getComputedStyle(output).fontSize),
    scrolls: output.scrollWidth > output.clientWidth,
    text: output.textContent,
  }))
"""


# The code under a copy button, of which each block has one.
COVERED = """
() => {
  for (const fold of document.querySelectorAll("article details")) fold.open = true;
  const buttons = [...document.querySelectorAll("article button.copybtn")].filter(
    button => button.checkVisibility());
  return [buttons.length, buttons.flatMap(button => {
    const here = button.getBoundingClientRect();
    const range = document.createRange();
    range.selectNodeContents(button.parentElement.querySelector("pre"));
    const over = [...range.getClientRects()].filter(({left, right, top, bottom}) =>
      left < here.right && here.left < right && top < here.bottom && here.top < bottom);
    return over.length ? [button.parentElement.textContent] : [];
  })];
}
"""

BUILD = "document.documentElement.dataset.code = 'build'"  # all code is open


def written(page_name):
    """The code of the chapter's cells."""
    notebook = json.loads((BOOK / page_name).with_suffix(".ipynb").read_text("utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.one_in(8)
def test_code_wraps_in_its_place_and_is_copied_as_it_was_written(visit, site, page_name):
    with visit(f"{site}/{page_name}", width=PHONE) as v:
        v.page.evaluate(BUILD)
        blocks = v.page.evaluate(CODE)
        wrapped = v.page.evaluate(WRAPPED)
    for line, *deeper in wrapped:
        assert min(deeper) == pytest.approx(2, abs=0.3), line
    for block in blocks:
        assert block["selected"].strip("\n") == block["text"].strip("\n")
        assert not block["loose"] and not block["scrolls"], block["text"]
    if (BOOK / page_name).with_suffix(".ipynb").exists():
        shown = [block["text"].rstrip("\n") for block in blocks if block["cell"]]
        assert wrapped and set(shown) <= set(written(page_name))


def test_the_button_copies_the_code_of_a_cell(visit, site, html_folder):
    [page] = html_folder.glob("05-*.html")
    with visit(f"{site}/{page.name}", width=PHONE, permissions=["clipboard-read"]) as v:
        v.page.evaluate(BUILD)
        copied = []
        cells = v.page.locator("div.cell_input:visible:has(.hang)")
        for cell in cells.all()[:5]:
            cell.locator("button.copybtn").click()
            copied.append(v.page.evaluate("navigator.clipboard.readText()"))
        assert len(set(copied)) == 5 and set(copied) <= set(written(page.name))


def test_on_a_touch_screen_no_button_lies_over_code(visit, site, html_folder):
    """Where nothing hovers the buttons are always there."""
    [page] = html_folder.glob("03-*.html")
    options = {"width": PHONE, "is_mobile": True, "has_touch": True}
    with visit(f"{site}/{page.name}", **options) as v:
        v.page.evaluate(BUILD)
        buttons, covered = v.page.evaluate(COVERED)
    assert buttons > 10 and not covered


def test_printed_tables_fit_a_phone_in_letters_as_large_as_can_be(visit, site, html_folder):
    tables = []
    for page in sorted(html_folder.glob("[0-9]*.html")):
        with visit(f"{site}/{page.name}", width=PHONE) as v:
            tables += v.page.evaluate(PRINTED)
    assert len(tables) > 300
    for table in tables:
        wanted = 13 if table["columns"] <= 42 else 11.9 if table["columns"] <= 46 else 11.2
        assert table["letters"] >= wanted, table["text"]
        assert not table["scrolls"] or table["columns"] > 46, table["text"]


@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (A4, "print")])
def test_elsewhere_lines_stand_as_they_did(visit, site, html_folder, width, media):
    [page] = html_folder.glob("05-*.html")
    with visit(f"{site}/{page.name}", width=width) as v:
        v.page.emulate_media(media=media)
        shown = "lines => [...new Set(lines.map(line => getComputedStyle(line).display))]"
        assert v.page.locator("article .hang").evaluate_all(shown) == ["inline"]


def test_names_and_punctuation_have_the_colour_of_the_code_around_them(html_folder):
    """So the pages do without their elements."""
    style = (html_folder / "_static" / "pygments.css").read_text("utf-8")
    for theme in ("light", "dark"):
        of_theme = rf'html\[data-theme="{theme}"\] \.highlight'
        [own] = re.findall(of_theme + r" \{.*?\bcolor: (#\w+)", style)
        for kind in COLOURLESS:
            assert re.findall(rf"{of_theme} \.{kind} \{{(.*?)\}}", style) == [f" color: {own} "]
