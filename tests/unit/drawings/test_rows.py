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


@pytest.mark.parametrize(("kind", "width"), [("wide", WIDE), ("narrow", NARROW)])
def test_what_every_svg_keeps_to(shown, kind, width):
    for each in shown:
        svg = getattr(each.drawing, kind)
        for box in elements(svg, "rect"):
            left, wide = float(box.get("x")), float(box.get("width"))
            assert left >= 0 and left + wide <= width, ET.tostring(box)
        for text in elements(svg, "text"):
            assert 0 <= float(text.get("x")) <= width, text.text
            assert float(text.get("font-size")) >= 11, f"{text.text} is too small to read"
        assert len(gzip.compress(svg.encode())) <= 12_000 and len(each.drawing.alt) >= 20
        # A class without a rule would be drawn in black.
        [style] = elements(svg, "style")
        worn = {look for at in ET.fromstring(svg).iter() for look in at.get("class", "").split()}
        assert not {look for look in worn - {"wide", "narrow"} if f".{look}" not in style.text}
