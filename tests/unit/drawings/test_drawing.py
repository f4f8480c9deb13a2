"""The kit: what it draws can be read back, at both widths, and how it draws it."""

import xml.etree.ElementTree as ET

import pytest
import torch

from attention.drawings.drawing import NARROW, WIDE, Box, Drawing
from tests.unit.drawings.reading import assert_drawn, elements, read_back

VALUES = torch.tensor([[0.5, -2.0, 0.0], [1.0, 0.25, -0.1]])
ROW = torch.tensor([0.7, -0.2, 0.1])
SHARES = torch.tensor([0.6, 0.3, 0.1])
LOOKS = ["head-0", "head-1", "x"]
PRIMITIVES = {
    "matrix": (VALUES, lambda canvas, t: canvas.matrix("T", 60, 30, t)),
    "matrix in a look": (VALUES, lambda canvas, t: canvas.matrix("T", 60, 30, t, "scores")),
    "bars": (ROW, lambda canvas, t: canvas.bars("T", 10, 90, t.tolist(), unit=60)),
    "points": (
        ROW,
        lambda canvas, t: canvas.points("T", (9, 30, 50), 90, t.tolist(), "q fill", unit=60),
    ),
    "flows": (SHARES, lambda canvas, t: canvas.flows("T", t.tolist(), ["M0,0H9"] * 3, "weights")),
    "strip": (ROW, lambda canvas, t: canvas.strip("T", 30, 9, t.tolist(), LOOKS, unit=90)),
    "vectors": (
        VALUES[:, :2],
        lambda canvas, t: canvas.vectors("T", [(80, 80)] * 2, t, "k", unit=40),
    ),
}


def drawn(paint, **values):
    def painted(canvas):
        paint(canvas)
        return 160

    return Drawing(painted, "What is drawn, in words.", values)


@pytest.mark.parametrize(("tensor", "paint"), PRIMITIVES.values(), ids=PRIMITIVES)
def test_the_numbers_drawn_can_be_read_back(tensor, paint):
    assert_drawn(drawn(lambda canvas: paint(canvas, tensor), T=tensor), {"T": tensor}, atol=0.01)


@pytest.mark.parametrize(("tensor", "paint"), PRIMITIVES.values(), ids=PRIMITIVES)
def test_a_wrong_number_is_noticed(tensor, paint):
    wrong = tensor.clone()
    wrong.view(-1)[1] += 0.05
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        assert_drawn(drawn(lambda canvas: paint(canvas, wrong), T=tensor), {"T": tensor}, 0.01)


def test_what_processors_disagree_about_is_not_drawn():
    one, other = (
        drawn(lambda canvas, x=x: canvas.path(f"M{x},9H{x / 3}")).wide
        for x in (190.21665273248072, 190.21664321155004)
    )
    assert one == other and "M190.2,9H63.4" in one


def test_a_tensor_of_zeros_is_drawn_in_no_shade():
    shades = read_back(drawn(lambda canvas: canvas.matrix("T", 9, 9, torch.zeros(2, 2))).wide)
    assert shades["T"].tolist() == [0.0] * 4


def test_the_sign_of_an_entry_is_a_colour_where_no_symbol_has_one():
    signed = drawn(lambda canvas: canvas.matrix("T", 9, 9, VALUES, digits=None)).wide
    looks = [cell.get("class") for cell in elements(signed, "rect")[1:-1]]
    assert looks == [f"{sign} fill" for sign in ("plus", "minus", *["plus"] * 3, "minus")]


def test_numbers_have_a_minus_and_zero_has_none():
    written = drawn(lambda canvas: canvas.matrix("T", 9, 9, torch.tensor([[-2.0, -0.001]]))).wide
    assert [text.text for text in elements(written, "text")] == ["−2.00", "0.00"]


def test_a_number_that_is_wider_than_its_cell_has_fewer_digits():
    numbers = torch.tensor([[-10.14, 3.25, -120.0]])
    written = drawn(lambda canvas: canvas.matrix("T", 9, 9, numbers, cell=(30, 22))).wide
    assert [text.text for text in elements(written, "text")] == ["−10", "3.25", "−120"]


def test_a_bar_below_zero_hangs_from_the_line():
    bars = elements(
        drawn(lambda canvas: canvas.bars("T", 9, 90, ROW.tolist(), unit=60)).wide, "rect"
    )[1:]
    edges = [(float(bar.get("y")), float(bar.get("y")) + float(bar.get("height"))) for bar in bars]
    assert [(round(top), round(foot)) for top, foot in edges] == [(48, 90), (90, 102), (84, 90)]


def test_a_tensor_is_drawn_to_scale_a_copy_for_each_head():
    boxes = []
    svg = drawn(
        lambda canvas: boxes.append(canvas.tensor(20, 30, (6, 4), "q", unit=5, copies=2))
    ).wide
    outlines = [box for box in elements(svg, "rect") if box.get("class") == "q stroke"]
    sizes = {(float(box.get("width")), float(box.get("height"))) for box in outlines}
    assert len(outlines) == 2 and sizes == {(20.0, 30.0)}
    assert boxes[0] == (20, 30, 24, 30)


def test_what_stands_side_by_side_stands_below_one_another_on_a_phone():
    panels, parts = {}, {}

    def paint(canvas):
        panels[canvas.narrow] = canvas.panels(3, 40, across=3)
        sizes = [lambda x, y: Box(x, y, 30, 20), lambda x, y: Box(x, y, 50, 60)]
        parts[canvas.narrow] = canvas.beside(9, 8, sizes, across=10, down=5)

    drawn(paint)
    third = WIDE / 3
    assert panels[False] == [(third * nth, 0, third, 40) for nth in range(3)]
    assert panels[True] == [(0, 40 * nth, NARROW, 40) for nth in range(3)]
    assert parts[False] == [(9, 8, 30, 20), (49, 8, 50, 60)]
    assert parts[True] == [(9, 8, 30, 20), (9, 33, 50, 60)]


def test_an_arrow_ends_where_it_points():
    line, head = elements(drawn(lambda canvas: canvas.arrow(5, 40, 65, 40)).wide, "path")
    assert line.get("d").startswith("M5,40L") and head.get("d").startswith("M65,40L")


def test_a_mistake_has_a_mark_besides_its_colour():
    svg = drawn(lambda canvas: canvas.mistake(30, 30)).wide
    assert elements(svg, "text")[0].text == "×"
    assert elements(svg, "circle")[0].get("class") == "mistake fill"


def test_a_drawing_says_what_it_is():
    """A picture, unless it holds links, which a screen reader finds in no picture."""
    plain = drawn(lambda canvas: canvas.text(9, 20, 'a "b" < c'))

    def linked(canvas):
        with canvas.link("#chapter-3"):
            canvas.text(40, 20, "heads")

    for drawing, role in ((plain, "img"), (drawn(linked), "group")):
        for svg, width in ((drawing.wide, WIDE), (drawing.narrow, NARROW)):
            root = ET.fromstring(svg)
            assert root.get("role") == role and root.get("aria-label") == drawing.alt
            assert float(root.get("width")) == width
    assert elements(plain.wide, "text")[0].text == 'a "b" < c'


def test_an_output_carries_the_phones_drawing_the_words_and_the_numbers():
    drawing = drawn(lambda canvas: canvas.bars("T", 9, 90, ROW.tolist(), unit=60), T=ROW)
    data, metadata = drawing._repr_mimebundle_()
    assert data == {"image/svg+xml": drawing.wide, "text/plain": "Drawing of T (3,)"}
    about = metadata["image/svg+xml"]
    assert about["alt"] == drawing.alt and about["narrow"] == drawing.narrow
    assert about["values"] == {"T": [0.7, -0.2, 0.1]}
