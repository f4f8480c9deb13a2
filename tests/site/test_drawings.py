"""Drawings as a browser writes their words: inside the drawing, and none over another.

`tests/unit/drawings` knows where a text begins; how long it is only a font tells.
"""

import json

import pytest

from tests.site.conftest import BOOK
from tools.widget_state import WIDGET_STATE

SVG = "image/svg+xml"

# Which texts stand outside of their drawing, by more than a pixel, and which over each other.
MISPLACED = """
drawings => {
  // Wide ones, of those that a page's "system-ui" may be.
  const fonts = '"DejaVu Sans", Verdana, system-ui, sans-serif';
  document.body.style.setProperty("--pst-font-family-base", fonts);
  document.body.innerHTML = drawings.join("");
  return [...document.querySelectorAll("svg")].flatMap(svg => {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map(
      text => ({words: text.textContent, box: text.getBoundingClientRect()}));
    const outside = texts.filter(({box}) => box.left < frame.left - 1
      || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
    // Digits of neighbouring cells may touch, and a line has room above its letters.
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
    const pairs = texts.flatMap((one, nth) => texts.slice(nth + 1)
      .filter(other => over(one.box, other.box)).map(other => [one.words, other.words]));
    const named = `${svg.classList[1]} “${svg.ariaLabel.slice(0, 40)}…”`;
    return [
      ...outside.map(({words}) => `${named}: “${words}” stands outside`),
      ...pairs.map(([one, other]) => `${named}: “${one}” lies over “${other}”`),
    ];
  });
}
"""


def drawings_of(path):
    """Both SVGs of every drawing of a notebook, those of an explorer's steps too."""
    notebook = json.loads(path.read_text("utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    found = []
    for output in outputs:
        about = output.get("metadata", {}).get(SVG, {})
        if "narrow" in about:
            found += ["".join(output["data"][SVG]), about["narrow"]]
    saved = notebook["metadata"].get("widgets", {}).get(WIDGET_STATE, {"state": {}})["state"]
    for model in saved.values():
        for frame in model["state"].get("frames", {}).values():
            if "narrow" in frame:
                found += [frame["wide"], frame["narrow"]]
    return list(dict.fromkeys(found))


DRAWN = {path.stem: found for path in sorted(BOOK.glob("*.ipynb")) if (found := drawings_of(path))}


@pytest.fixture(scope="module")
def blank(browser):
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    yield page
    page.close()


@pytest.mark.quick
@pytest.mark.parametrize("stem", DRAWN)
def test_its_words_stand_inside_and_apart(blank, stem):
    misplaced = blank.evaluate(MISPLACED, DRAWN[stem])
    assert not misplaced, "\n".join(misplaced)


def test_drawings_are_found():
    assert sum(map(len, DRAWN.values())) > 40
