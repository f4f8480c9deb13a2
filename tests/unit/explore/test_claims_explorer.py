"""The explorer of claims: what theory says of each measure, and real modules for the parameters."""

import math

import pytest
import torch

from attention import MultiHeadAttention, PerHeadAttention
from attention.explore import claims_explorer
from attention.explore.claims import CLAIMS, D_KEYS, D_MODEL, SEQ, draw
from tests.unit.explore.test_explore import frame, stored


@pytest.fixture(scope="module")
def explorer():
    return claims_explorer()


def values(explorer, claim):
    """(d_keys, cases)."""
    return stored(explorer, frame(explorer, claim=claim)["values"])[..., 0].double()


def test_every_claim_has_two_or_three_cases_with_names(explorer):
    for claim in CLAIMS:
        held = frame(explorer, claim=claim)
        assert values(explorer, claim).shape == (len(D_KEYS), len(held["names"]))
        assert 2 <= len(held["names"]) <= 3 and held["told"] and held["title"]
        assert values(explorer, claim).isfinite().all()


def test_the_spread_grows_with_the_root_of_d_key(explorer):
    """Vaswani et al. 2017, footnote 4: the variance of a dot product is d_key."""
    sizes = torch.tensor(D_KEYS, dtype=torch.float64) / 16  # in times of that at d_key 16
    expected = torch.stack([sizes.sqrt(), torch.ones(len(sizes)), 1 / sizes.sqrt()], dim=-1)
    torch.testing.assert_close(values(explorer, "divide by d_key"), expected, rtol=0.05, atol=0.0)


def test_shares_are_those_of_loops_over_all_pairs(explorer):
    bounded = values(explorer, "dots from −1 to 1")
    own = values(explorer, "a token sees itself")
    assert (bounded[:, 1] == 1).all() and (own[:, 2] == 1).all()
    for d_key in (4, 64):
        (q, k), at = draw(d_key), D_KEYS.index(d_key)
        pairs = [float(a @ b) for qs, ks in zip(q, k, strict=True) for a in qs for b in ks]
        expected = sum(-1 <= dot <= 1 for dot in pairs) / len(pairs)
        assert bounded[at, 0].item() == pytest.approx(expected)
        alike = [int((ks @ a).argmax()) == i for ks in q for i, a in enumerate(ks)]
        assert own[at, 1].item() == pytest.approx(sum(alike) / len(alike))
    torch.testing.assert_close(
        own[:, 0], torch.full((len(D_KEYS),), 1 / SEQ).double(), atol=0.03, rtol=0
    )


def test_a_flat_softmax_sees_all_and_an_unscaled_one_nearly_one(explorer):
    seen = values(explorer, "a head sees one place")
    assert seen[-1, 2] > 15 and seen[-1, 0] < 1.5
    q, k = draw(64)
    weights = [(math.exp(s) for s in row) for row in (q[0] @ k[0].T / 8).tolist()]
    by_hand = [sum(x > 0.05 * sum(row) for x in row) for row in map(list, weights)]
    a = (q[0] @ k[0].T / 8).softmax(-1)
    assert by_hand == (a > 0.05).sum(-1).tolist()


@pytest.mark.parametrize("d_key", D_KEYS)
def test_parameters_are_those_of_modules(explorer, d_key):
    n_heads = D_MODEL // d_key
    split, wide = (1000 * values(explorer, "heads cost parameters")[D_KEYS.index(d_key)]).tolist()
    with torch.device("meta"):
        one = PerHeadAttention(D_MODEL, n_heads)
        whole = MultiHeadAttention(D_MODEL, n_heads)
    for module in (one, whole):
        assert sum(p.numel() for p in module.parameters()) == pytest.approx(split)
    inner = 64 * n_heads  # biases included
    assert wide == pytest.approx(3 * (D_MODEL + 1) * inner + (inner + 1) * D_MODEL)
