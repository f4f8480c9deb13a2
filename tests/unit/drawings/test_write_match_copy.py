"""What is written, matched and copied is what the two heads of the trained model do."""

import math

import pytest
import torch

from attention.drawings import write_match_copy
from attention.trained.induction import decode, encode, load
from tests.unit.drawings.reading import assert_drawn

WIDTH = 16  # of a head


@torch.no_grad()
def two_looks(text):
    """The weights of head 0.1, the scores of head 1.0 for the last token, and the answer."""
    model = load(2).double()
    first, second = model.layers
    x = model.embedding(encode(text))[0] + model.positions.table[: len(text)]
    rows = x.clone()
    for head in (0, 1):
        own = slice(WIDTH * head, WIDTH * (head + 1))
        q, k, v = (x @ w.weight[own].T for w in (first.w_q, first.w_k, first.w_v))
        hidden = torch.ones(len(text), len(text)).triu(1).bool()
        weights = (q @ k.T / math.sqrt(WIDTH)).masked_fill(hidden, -torch.inf).softmax(-1)
        rows += weights @ v @ first.w_o.weight[:, own].T
    query, keys = rows[-1] @ second.w_q.weight[:WIDTH].T, rows @ second.w_k.weight[:WIDTH].T
    logits, _ = model(encode(text))
    return weights, keys @ query / math.sqrt(WIDTH), decode(logits[0, -1].argmax()[None])


@pytest.mark.parametrize(("text", "found"), [("kxcdqmk", 1), ("dxckqmk", 4)])
def test_a_head_writes_and_another_matches_and_copies(text, found):
    weights, scores, answer = two_looks(text)
    assert answer == text[found]
    drawing = write_match_copy(text, weights, scores, answer)
    expected = {
        "writes": weights[found],
        "writes elsewhere": torch.cat([weights[:found], weights[found + 1 :]]),
        "copies": scores.exp() / scores.exp().sum(),
    }
    assert_drawn(drawing, expected)
    for svg in (drawing.wide, drawing.narrow):
        assert f">matches, score {scores[found]:.1f}<" in svg
        assert f">copies {expected['copies'][found]:.2f}<" in svg
        assert ">writes<" in svg and f">{weights[found].max():.2f}<" in svg


def test_the_numbers_of_the_chapters_example():
    _, scores, _ = two_looks("kxcdqmk")
    # Printed in chapter 12, the score of x in the first head of two layers.
    assert f"{scores[1]:.2f}" == "15.19"


def test_another_sequence_is_seen():
    weights, scores, _ = two_looks("kxcdqmk")
    _, other_scores, _ = two_looks("dxckqmk")
    drawing = write_match_copy("kxcdqmk", weights, other_scores, "x")
    with pytest.raises(AssertionError):
        assert_drawn(drawing, drawing.values | {"copies": scores.softmax(-1)})
    assert "copies q from it" in drawing.alt
