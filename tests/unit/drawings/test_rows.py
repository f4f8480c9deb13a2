"""What every drawing has in common, at both widths, over the table of `rows.py`."""

import gzip
import xml.etree.ElementTree as ET

import pytest
import torch

from attention import drawings
from attention.drawings.drawing import NARROW, WIDE
from tests.unit.drawings.reading import assert_drawn, elements
from tests.unit.drawings.rows import ROWS


@pytest.fixture(scope="module", params=ROWS)
@torch.no_grad()
def shown(request):
    return list(ROWS[request.param]())


@pytest.fixture
def svgs(shown):
    """Every SVG of a row, with its width."""
    both = [((each.drawing.wide, WIDE), (each.drawing.narrow, NARROW)) for each in shown]
    return [pair for pairs in both for pair in pairs]


def test_every_drawing_has_a_row():
    assert ROWS.keys() | {"Drawing"} == set(drawings.__all__)


def test_its_tensors_and_words_are_those_of_the_row(shown):
    for drawing, tensors, alt, written, atol in shown:
        if tensors is not None:
            assert_drawn(drawing, tensors, atol)
        for words in alt:
            assert words in drawing.alt
        for words in written:
            assert words in drawing.wide and words in drawing.narrow, words


def test_it_keeps_to_the_width(svgs):
    for svg, width in svgs:
        for box in elements(svg, "rect"):
            left, wide = float(box.get("x")), float(box.get("width"))
            assert left >= 0 and left + wide <= width, ET.tostring(box)
        for text in elements(svg, "text"):
            assert 0 <= float(text.get("x")) <= width, text.text


def test_no_text_is_too_small_to_read(svgs):
    for svg, _ in svgs:
        sizes = {text.text: float(text.get("font-size")) for text in elements(svg, "text")}
        assert not {words: size for words, size in sizes.items() if size < 11}


def test_it_is_small_and_says_what_it_shows(shown, svgs):
    assert all(len(each.drawing.alt) >= 20 for each in shown)
    assert all(len(gzip.compress(svg.encode())) <= 12_000 for svg, _ in svgs)


def test_a_look_is_one_that_the_style_knows(svgs):
    """A class without a rule would be drawn in black."""
    for svg, _ in svgs:
        [style] = elements(svg, "style")
        worn = {
            look for each in ET.fromstring(svg).iter() for look in each.get("class", "").split()
        }
        assert not {look for look in worn - {"wide", "narrow"} if f".{look}" not in style.text}
