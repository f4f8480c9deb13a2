"""The explorer of buckets: its pairs are those that LSH attention computes, and no others."""

import math

import pytest
import torch

from attention import lsh_attention
from attention.explore import buckets_explorer
from attention.explore.buckets import (
    ANGLES,
    CHUNKS,
    CURVE,
    DRAWS,
    KEY,
    N_BUCKETS,
    QUERY,
    ROUNDS,
    SEQ,
    pairs_seen,
    token_vectors,
)
from tests.unit.explore.test_explore import frame, stored


@pytest.fixture(scope="module")
def explorer():
    return buckets_explorer()


def tensors(explorer, n_buckets, *names):
    held = frame(explorer, n_buckets=str(n_buckets))
    return [stored(explorer, held[name]).double() for name in names]


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("n_buckets", N_BUCKETS)
def test_its_pairs_are_those_that_the_module_attends_to(explorer, n_buckets, chunk):
    weights, buckets, kept = tensors(explorer, n_buckets, "weights", "buckets", "kept")
    eye = torch.eye(SEQ).double()
    for at, x in enumerate(token_vectors()[:, None, None]):
        for draw in range(DRAWS):
            for nth, rounds in enumerate(ROUNDS):
                of_rounds = buckets[at, draw, :rounds].long()
                # With the identity as values the output is the weights.
                theirs = lsh_attention(
                    x, eye[None, None], of_rounds[None, None], chunk_length=chunk
                )
                seen = pairs_seen(of_rounds, chunk).any(0) & ~eye.bool()
                alone = ~seen.any(-1)
                assert (theirs[0, 0] > 0).equal(seen | eye.bool() & alone[:, None])
                ours = weights[at].masked_fill(~seen, 0.0)
                share = ours.sum(-1, keepdim=True)
                some = ~alone
                torch.testing.assert_close(
                    (ours / share)[some], theirs[0, 0][some], atol=1e-5, rtol=1e-4
                )
                found = kept[at, draw, nth, CHUNKS.index(chunk)]
                torch.testing.assert_close(found, share[QUERY, 0], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("n_buckets", N_BUCKETS)
def test_its_circle_has_the_buckets_of_its_tokens(explorer, n_buckets):
    places, buckets, circle, order = tensors(
        explorer, n_buckets, "places", "buckets", "circle", "order"
    )
    step = 360 // circle.shape[-1]
    at_three = places % 360 % step == 0  # the tokens that lie on a point of the circle
    points = (places % 360 / step).long()
    for at in range(len(ANGLES)):
        expected = circle[..., points[at]]  # (draws, rounds, seq)
        same = expected == buckets[at]
        assert same[..., at_three[at]].all()
        for draw in range(DRAWS):
            for r in range(max(ROUNDS)):
                in_order = buckets[at, draw, r][order[at, draw, r, 0].long()]
                assert (in_order.diff() >= 0).all()
    assert circle.max() < n_buckets and set(order[0, 0, 0, 0].tolist()) == set(range(SEQ))


@pytest.mark.parametrize("n_buckets", N_BUCKETS)
def test_its_chance_falls_with_the_angle_and_grows_with_the_rounds(explorer, n_buckets):
    [chance] = tensors(explorer, n_buckets, "chance")  # (rounds, curve)
    assert chance.shape == (len(ROUNDS), len(CURVE)) and chance[:, 0].eq(1.0).all()
    assert (chance.diff(dim=-1) < 0.03).all() and (chance.diff(dim=0) >= 0).all()
    # A pair meets in none of r independent rounds with the r-th power of the chance for one.
    for nth, rounds in enumerate(ROUNDS):
        expected = 1 - (1 - chance[0]) ** rounds
        torch.testing.assert_close(chance[nth], expected, atol=0.1, rtol=0)


def test_the_query_needs_its_key_most(explorer):
    weights, places = tensors(explorer, 8, "weights", "places")
    for at, angle in enumerate(ANGLES):
        assert places[at, QUERY] - places[at, KEY] == angle
        assert weights[at, QUERY].argmax() == KEY
        assert math.isclose(weights[at, QUERY].sum(), 1.0, abs_tol=1e-6)
        assert weights[at].diagonal().eq(0.0).all()
