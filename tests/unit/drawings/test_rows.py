"""What every drawing has in common, at both widths, over the table of `rows.py`."""

import gzip
import re
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
    for drawing, tensors, alt, written, counts, atol in shown:
        if tensors is not None:
            assert_drawn(drawing, tensors, atol)
        for words in alt:
            assert words in drawing.alt
        for svg in (drawing.wide, drawing.narrow):
            for words in written:
                assert words in svg, words
            for words, count in counts:
                assert svg.count(words) == count, words


@pytest.mark.parametrize(("kind", "width"), [("wide", WIDE), ("narrow", NARROW)])
def test_what_every_svg_keeps_to(shown, kind, width):
    for each in shown:
        svg = getattr(each.drawing, kind)
        height = float(ET.fromstring(svg).get("height"))
        for box in elements(svg, "rect"):
            left, top, wide, high = (float(box.get(of)) for of in ("x", "y", "width", "height"))
            assert left >= 0 and left + wide <= width, ET.tostring(box)
            assert top >= 0 and top + high <= height, ET.tostring(box)
        for text in elements(svg, "text"):
            assert 0 <= float(text.get("x")) <= width, text.text
            assert 0 <= float(text.get("y")) <= height, text.text
            assert float(text.get("font-size")) >= 11, f"{text.text} is too small to read"
        # Arrows and curves: the paths of straight lines.
        for path in re.findall(r' d="M([-\d.,L]+)Z?"', svg):
            for x, y in (map(float, place.split(",")) for place in path.split("L")):
                assert 0 <= x <= width and 0 <= y <= height, path
        assert len(gzip.compress(svg.encode())) <= 12_000 and len(each.drawing.alt) >= 20
        # A class without a rule would be drawn in black.
        [style] = elements(svg, "style")
        worn = {look for at in ET.fromstring(svg).iter() for look in at.get("class", "").split()}
        assert not {look for look in worn - {"wide", "narrow"} if f".{look}" not in style.text}
