"""The arrows keep what the dot products of four numbers say: lengths, angles, signs."""

import re

import pytest
import torch

from attention import running_example
from attention.drawings import query_and_keys
from tests.unit.drawings.reading import assert_drawn, read_back

SIDES = ("width", "height")


@pytest.fixture(scope="module")
def head_0():
    """The query of "saw" and the keys of both cats."""
    example = running_example()
    q, k = (layer(example.x)[0, :, :4] for layer in (example.attention.w_q, example.attention.w_k))
    return q[2], k[[1, 5]]


def by_angle(query, keys):
    query, keys = query.double(), keys.double()
    length, lengths = query.square().sum().sqrt(), keys.square().sum(-1).sqrt()
    angle = torch.nn.functional.cosine_similarity(keys, query[None]).acos()
    return {
        "query": torch.tensor([[length, 0.0]]),
        "keys": torch.stack((lengths * angle.cos(), lengths * angle.sin()), dim=-1),
    }


def test_keys_keep_their_length_and_their_angle_with_the_query(head_0):
    assert_drawn(query_and_keys(*head_0, "saw", ["cat 1", "cat 5"]), by_angle(*head_0))


def test_the_keys_exchanged_are_seen(head_0):
    query, keys = head_0
    with pytest.raises(AssertionError):
        assert_drawn(
            query_and_keys(query, keys.flip(0), "saw", ["cat 1", "cat 5"]), by_angle(*head_0)
        )


def test_dot_products_of_the_arrows_are_the_scores(head_0):
    query, keys = head_0
    drawing = query_and_keys(query, keys, "saw", ["cat 1", "cat 5"])
    for svg in (drawing.wide, drawing.narrow):
        found = read_back(svg)
        scores = found["keys"].view(2, 2) @ found["query"]
        torch.testing.assert_close(scores, (keys @ query).double(), atol=0.1, rtol=0)
        assert "score 15.66<" in svg
        assert "score 5.42<" in svg


def test_arrows_longer_than_the_query_stay_within_the_drawing(head_0):
    query, keys = head_0
    assert (keys @ query / query.norm()).max() > query.norm()
    drawing = query_and_keys(query, keys, "saw", ["cat 1", "cat 5"])
    for svg in (drawing.wide, drawing.narrow):
        width, height = (float(re.search(rf' {side}="([\d.]+)"', svg)[1]) for side in SIDES)
        for d in re.findall(r' d="M([-\d.,L]+)Z"', svg):
            for place in d.split("L"):
                right, down = map(float, place.split(","))
                assert 0 <= right <= width
                assert 0 <= down <= height


def test_it_says_where_each_key_points():
    keys = torch.tensor([[2.0, 1], [1, 2], [-2, 1]])
    drawing = query_and_keys(torch.tensor([3.0, 0]), keys, "saw", ["a", "b", "c"])
    for token, way in zip("abc", ("along", "aside", "away"), strict=True):
        assert f"{token} points {way}: score" in drawing.wide
        assert f"The key of {token} points {way}:" in drawing.alt
