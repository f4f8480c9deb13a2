"""The parts of a score are those of the trained model, and their sum is the score that it gives."""

import pytest
import torch

from attention.drawings import score_in_parts
from attention.trained.induction import encode, load
from tests.unit.drawings.reading import assert_drawn

NAMES = ["own token and place", "written by head 0.1", "written by head 0.0"]
OWN = slice(0, 16)  # of head 1.0


@torch.no_grad()
def score(text, without=()):
    """What head 1.0 gives the key at place 1, without what these heads of layer 0 add to it."""
    model = load(2).double()
    first, second = model.layers
    x = model.positions(model.embedding(encode(text)))
    row = (x + first(x, causal=True)[0])[0, -1]
    for head in without:
        first.w_o.weight[:, 16 * head : 16 * head + 16] = 0
    key = (x + first(x, causal=True)[0])[0, 1] @ second.w_k.weight[OWN].T
    return row @ second.w_q.weight[OWN].T @ key / 4


def parts(text):
    """Each as the difference that the head makes."""
    whole = score(text)
    head_1, head_0 = whole - score(text, [1]), whole - score(text, [0])
    return torch.stack([score(text, [0, 1]), head_1, head_0])


def drawn(text):
    return score_in_parts({text: parts(text)}, NAMES, "x")


@pytest.mark.parametrize(("text", "said"), [("kxcdqmk", "15.19"), ("dxckqmk", "4.29")])
def test_parts_sum_to_the_score_that_the_chapter_prints(text, said):
    assert f"{parts(text).sum():.2f}" == f"{score(text):.2f}" == said
    drawing = drawn(text)
    assert_drawn(drawing, {text: parts(text)})
    for svg in (drawing.wide, drawing.narrow):
        assert f">{score(text):.1f}<" in svg


def test_what_head_1_wrote_carries_the_score():
    own, wrote, _ = parts("kxcdqmk")
    own_of_other, wrote_by_other, _ = parts("dxckqmk")
    assert wrote > 0.85 * score("kxcdqmk")
    assert wrote - wrote_by_other > 10 > 0.1 > abs(own - own_of_other)


def test_parts_of_another_sequence_are_seen():
    with pytest.raises(AssertionError):
        assert_drawn(drawn("kxcdqmk"), {"kxcdqmk": parts("dxckqmk")})
