"""The map of Part II: its boxes have the shapes of the tensors, and its pieces lead to chapters."""

import re
import xml.etree.ElementTree as ET

import pytest

from attention.drawings import two_towers
from attention.drawings.drawing import NARROW, WIDE
from attention.drawings.two_towers import DATE, ISO, UNIT
from attention.trained.dates import load

SVG = "{http://www.w3.org/2000/svg}"
PIECES = {
    "letters": 1,
    "signs": 1,
    "positions": 10,
    "attention": 7,
    "causal": 5,
    "cross-attention": 9,
    "feed-forward": 11,
    "layers": 12,
    "logits, loss": 8,
}


@pytest.fixture(params=["wide", "narrow"])
def width(request):
    return request.param


def links(drawing, width):
    """Each piece: its name, its link, and the group around it."""
    root = ET.fromstring(getattr(drawing, width))
    around = {child: parent for parent in root.iter() for child in parent}
    for link in root.iter(f"{SVG}a"):
        # The names of axes are smaller than those of pieces.
        named = {text.text for text in link.iter(f"{SVG}text") if text.get("font-size") == "12"}
        for name in PIECES.keys() & named:
            yield name, link, around[link]


def texts(element):
    return [text.text for text in element.iter(f"{SVG}text")]


def test_every_box_has_the_shape_of_its_tensor(width):
    model = load("transformer").transformer
    d_model, heads = 48, len(model.decoder.layers[0].cross_attention.w_q.weight) // 12
    read, written = len(DATE), len(ISO) + 1
    expected = {
        "letters": [(read, d_model)],
        "signs": [(written, d_model)],
        "attention": heads * [(read, read)],
        "causal": heads * [(written, written)],
        "cross-attention": [(read, d_model), *heads * [(written, read)]],
        "logits, loss": [(written, model.to_logits.out_features)],
    }
    found = {}
    for name, link, _ in links(two_towers(), width):
        boxes = [r for r in link.iter(f"{SVG}rect") if "stroke" in r.get("class").split()]
        sizes = [(float(b.get("height")) / UNIT, float(b.get("width")) / UNIT) for b in boxes]
        # Frames and signs of a sum are rounded, tensors are not.
        found[name] = [
            (round(high), round(wide))
            for b, (high, wide) in zip(boxes, sizes, strict=True)
            if b.get("rx") is None
        ]
    for name, shapes in expected.items():
        assert found[name] == shapes, name


def test_every_piece_leads_to_its_chapter(width):
    found = {}
    for name, link, _ in links(two_towers(), width):
        found[name] = int(re.fullmatch(r"#chapter-(\d+)", link.get("href"))[1])
        assert f"chapter {found[name]}" in texts(link)
    assert found == PIECES


@pytest.mark.parametrize("lit", range(8, 13))
def test_what_a_chapter_builds_is_lit_and_what_comes_is_faint(lit, width):
    for name, link, group in links(two_towers(lit), width):
        assert (group.get("class") == "faint") == (PIECES[name] > lit), name
        named = next(text for text in link.iter(f"{SVG}text") if text.text == name)
        assert ("bold" in named.get("class", "").split()) == (PIECES[name] == lit), name
    assert two_towers(lit).alt.endswith(f"Lit: what chapter {lit} builds.")


def test_chapter_13_has_the_whole(width):
    whole = two_towers(13)
    assert getattr(whole, width) == getattr(two_towers(), width)
    assert not [group for _, _, group in links(whole, width) if group.get("class")]


def test_the_words_give_the_shapes_in_the_order_of_the_arrows():
    alt = two_towers().alt
    order = ["letters, 26 × 48", "4 × 26 × 26", "memory, 26 × 48"]
    order += ["signs, 11 × 48", "4 × 11 × 11", "4 × 11 × 26", "logits, 11 × 14"]
    assert [alt.index(words) for words in order] == sorted(alt.index(words) for words in order)


def test_nothing_stands_outside(width):
    outermost = {"wide": WIDE, "narrow": NARROW}[width]
    for text in ET.fromstring(getattr(two_towers(), width)).iter(f"{SVG}text"):
        if text.get("transform"):
            continue
        half = 0.27 * float(text.get("font-size")) * len(text.text)
        assert half <= float(text.get("x")) <= outermost - half, text.text
