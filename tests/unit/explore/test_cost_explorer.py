"""The explorer of costs: its frames hold the counts of a real layer, and where pairs overtake."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attention import EncoderLayer
from attention.explore import cost_explorer
from attention.explore.cost import CURVE, D_MODELS, LENGTHS, N_HEADS, PARTS, multiply_adds
from tests.unit.explore.test_explore import frame, stored


@pytest.fixture(scope="module")
def explorer():
    return cost_explorer()


@pytest.mark.parametrize(("d_model", "n_heads"), [(384, 1), (768, 12), (12288, 96)])
@pytest.mark.parametrize("n", [64, 131_072])
def test_its_parts_are_what_torch_counts(explorer, d_model, n_heads, n):
    """On the meta device, whose tensors hold no numbers: at n = 131,072 too."""
    held = frame(explorer, d_model=str(d_model), n_heads=str(n_heads))
    parts, cached = (
        stored(explorer, held[name])[LENGTHS.index(n), :, 0] for name in ("parts", "held")
    )
    with torch.device("meta"):
        layer, x = EncoderLayer(d_model, n_heads, 4 * d_model), torch.empty(1, n, d_model)
        with FlopCounterMode(display=False) as counter:
            _, weights = layer(x)
    assert 2 * parts.double().sum().item() * 1e6 == pytest.approx(counter.get_total_flops())
    assert cached.tolist() == pytest.approx([2 * n * d_model / 1e6, weights.numel() / 1e6])


def test_its_shares_sum_to_one_and_are_those_of_its_parts(explorer):
    held = frame(explorer, d_model="768", n_heads="12")
    parts, shares = (stored(explorer, held[name]) for name in ("parts", "shares"))
    assert shares.shape == (len(CURVE), len(PARTS)) and set(LENGTHS) < set(CURVE)
    torch.testing.assert_close(shares.sum(-1), torch.ones(len(CURVE)))
    at_lengths = shares[[CURVE.index(n) for n in LENGTHS]]
    torch.testing.assert_close(at_lengths, parts[..., 0] / parts[..., 0].sum(-1, keepdim=True))


@pytest.mark.parametrize("d_model", D_MODELS)
def test_pairs_overtake_at_the_marks_of_the_view(d_model):
    for n, others in ((2 * d_model, [0]), (6 * d_model, [0, 2])):
        for off, sign in ((-1, -1), (0, 0), (1, 1)):
            parts = multiply_adds(n + off, d_model, 1)
            assert torch.sign(parts[1] - parts[others].sum()) == sign


def test_every_number_of_heads_divides_every_width(explorer):
    assert len(explorer.view.frames) == len(D_MODELS) * len(N_HEADS)
    assert not any("error" in held for held in explorer.view.frames.values())
