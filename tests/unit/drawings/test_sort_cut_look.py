"""The row is sorted by the hash's buckets, and a token looks where LSH attention lets it look."""

import re

import pytest
import torch

from attention import lsh_attention, lsh_buckets
from attention.drawings import sort_cut_look
from tests.unit.drawings.reading import assert_drawn

ANGLES = torch.deg2rad(torch.tensor([20.0, 160, 35, 250, 10, 170, 325, 190]))
X = torch.stack([ANGLES.cos(), ANGLES.sin()], dim=-1).double()
TURN = torch.deg2rad(torch.tensor(-30.0))
R = torch.stack([TURN.cos(), -TURN.sin(), TURN.sin(), TURN.cos()]).view(2, 2).double()
BUCKETS = lsh_buckets(X[None, None], R[None])[0, 0, 0]


def steps(x=X):
    return sort_cut_look(x, R, BUCKETS, chunk_length=3, asks=4)


def test_every_step_shows_the_directions():
    for drawing in steps().values():
        assert_drawn(drawing, {"x": X})
    assert_drawn(steps(3 * X)["1: hash"], {"x": X})
    with pytest.raises(AssertionError):
        assert_drawn(steps()["1: hash"], {"x": X.flip(0)})


def cells(svg):
    """The tokens and buckets of the row, from left to right."""
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>(\d)</text>', svg)
    heights = sorted(
        {float(y) for _, y, _ in found}, key=lambda y: -sum(float(o[1]) == y for o in found)
    )
    upper, lower = sorted(heights[:2])
    return [
        [int(n) for _, y, n in sorted(found, key=lambda o: float(o[0])) if float(y) == h]
        for h in (upper, lower)
    ]


def test_the_row_is_sorted_by_bucket_and_then_by_position():
    order = BUCKETS.argsort(stable=True)
    for name, wanted in (("1: hash", torch.arange(8)), ("2: sort", order), ("4: look", order)):
        for svg in (steps()[name].wide, steps()[name].narrow):
            tokens, buckets = cells(svg)
            assert tokens == wanted.tolist()
            assert buckets == BUCKETS[wanted].tolist()


@pytest.mark.parametrize("asks", range(8))
def test_a_token_looks_where_lsh_attention_does(asks):
    """Whose values move its output? Itself only where it sees nothing else."""
    value = torch.eye(8).double()[None, None]
    output = lsh_attention(X[None, None], value, BUCKETS[None, None, None], chunk_length=3)
    wanted = set(output[0, 0, asks].nonzero().flatten().tolist()) - {asks}
    drawing = sort_cut_look(X, R, BUCKETS, chunk_length=3, asks=asks)["4: look"]
    said = re.match(rf"Token {asks} looks at ([\d, ]+|none):", drawing.alt)[1]
    assert {int(n) for n in re.findall(r"\d", said)} == wanted
    assert f"{asks} looks at {said}<" in drawing.wide
