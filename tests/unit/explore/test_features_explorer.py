"""The explorer of random features: its estimates are what Performer weighs by, its errors fall."""

import pytest
import torch

from attention import performer_attention
from attention.explore import features_explorer
from attention.explore.features import (
    FEATURES,
    LENGTHS,
    PAIRS,
    SHOWN,
    asked_pairs,
    misplaced,
    projections,
)
from tests.unit.explore.test_explore import frame, stored

pytestmark = pytest.mark.slow  # its frames are 5,000 estimates


@pytest.fixture(scope="module")
def explorer():
    return features_explorer()


@pytest.mark.parametrize("orthogonal", ["off", "on"])
@pytest.mark.parametrize("length", [str(length) for length in LENGTHS])
def test_its_estimates_are_performers(explorer, length, orthogonal):
    """With one-hot values the output is the weights."""
    held = frame(explorer, length=length, orthogonal=orthogonal)
    _, *heads = asked_pairs()
    q, k = (float(length) * x[None, None] for x in heads)
    v = torch.eye(PAIRS).double()[None, None]
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v)[0, 0]
    torch.testing.assert_close(stored(explorer, held["exact"]), exact.float())
    estimates = stored(explorer, held["estimates"])
    for nth, n_features in enumerate(FEATURES):
        drawn = projections(n_features, q.shape[-1], orthogonal == "on")[:SHOWN]
        for draw, projection in enumerate(drawn):
            ours = performer_attention(q, k, v, projection.double())[0, 0]
            torch.testing.assert_close(estimates[nth, draw], ours.float(), atol=1e-5, rtol=1e-4)


def test_what_is_misplaced_is_a_share():
    exact = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assert misplaced(exact, exact).item() == 0.0
    assert misplaced(torch.tensor([[0.0, 1.0], [0.5, 0.5]]), exact).item() == 0.5


@pytest.mark.parametrize("orthogonal", ["off", "on"])
def test_more_features_and_shorter_vectors_misplace_less(explorer, orthogonal):
    means = torch.stack(
        [
            stored(explorer, frame(explorer, length=str(n), orthogonal=orthogonal)["spread"])[:, 0]
            for n in LENGTHS
        ]
    )
    assert (means[:, 1:] < means[:, :-1]).all()  # along the features
    assert (means[1:] > means[:-1]).all()  # along the lengths


def test_the_spread_holds_the_mean(explorer):
    for held in explorer.view.frames.values():
        mean, low, high = stored(explorer, held["spread"]).T
        assert (low <= mean).all() and (mean <= high).all()
