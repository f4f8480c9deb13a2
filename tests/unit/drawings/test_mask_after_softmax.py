"""Above the line of each fraction stands the same power; below it, the hidden keys only if late."""

import pytest
import torch

from attention.drawings import mask_after_softmax
from tests.unit.drawings.reading import assert_drawn, read_back

SCORES = torch.tensor([7.88, -8.37, 7.33, 8.94])
MASK = torch.tensor([True, True, False, False])
TOKENS = ["birds", "sing", "<pad>", "<pad>"]


def test_the_strips_are_the_powers():
    drawing = mask_after_softmax(SCORES, MASK, TOKENS)
    powers = torch.exp(SCORES) / torch.exp(SCORES[3])
    expected = {
        "top first": powers[:1],
        "sum first": torch.tensor([powers[0], powers[1], 0.0, 0.0]),
        "top late": powers[:1],
        "sum late": powers,
    }
    assert_drawn(drawing, expected, atol=0.001)


def test_the_fractions_are_the_weights_of_either_order():
    drawing = mask_after_softmax(SCORES, MASK, TOKENS)
    early = SCORES.masked_fill(~MASK, -torch.inf).softmax(dim=0)[0]
    late = (SCORES.softmax(dim=0) * MASK)[0]
    for svg in (drawing.wide, drawing.narrow):
        found = read_back(svg)
        for order, weight in (("first", early), ("late", late)):
            share = found[f"top {order}"].sum() / found[f"sum {order}"].sum()
            assert float(share) == pytest.approx(float(weight), abs=0.001)
            assert f"= {weight:.2f}" in svg
