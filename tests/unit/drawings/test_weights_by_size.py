"""The bars are the means of the sorted weights, with and without the divisor."""

import math

import torch

from attention.drawings import weights_by_size
from tests.unit.drawings.reading import assert_drawn


def test_the_bars_are_mean_sorted_weights():
    torch.manual_seed(0)
    scores = {d_key: torch.randn(40, d_key) @ torch.randn(d_key, 16) for d_key in (4, 64)}
    expected = {}
    for d_key, unscaled in scores.items():
        for how, divisor in (("unscaled", 1), ("scaled", math.sqrt(d_key))):
            powers = (unscaled / divisor).exp()
            weights = powers / powers.sum(dim=-1, keepdim=True)
            rows = [sorted(row, reverse=True)[:10] for row in weights.tolist()]
            expected[f"d_key {d_key}, {how}"] = torch.tensor(rows).mean(dim=0)
    assert_drawn(weights_by_size(scores), expected, atol=0.002)
