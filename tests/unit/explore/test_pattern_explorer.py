"""The explorer of patterns: what it says is reached is what changes when a token is changed."""

import pytest
import torch

from attention import MultiHeadAttention
from attention.explore import pattern_explorer
from attention.explore.pattern import BLOCKS, LAYERS, PATTERNS, SEQ, WIDTHS
from tests.unit.explore.test_explore import frame, stored

EACH = [(pattern, width) for pattern in PATTERNS for width in WIDTHS]


@pytest.fixture(scope="module")
def explorer():
    return pattern_explorer()


def tensors(explorer, pattern, width):
    held = frame(explorer, pattern=pattern, width=str(width))
    return [stored(explorer, held[name]) for name in ("pattern", "computed", "reached")]


@pytest.mark.parametrize(("pattern", "width"), EACH)
def test_reached_is_what_a_changed_token_changes(explorer, pattern, width):
    """In layers with random weights, each added to the row that enters it."""
    mask, _, reached = tensors(explorer, pattern, width)
    rng = torch.Generator().manual_seed(0)
    before = torch.randn(1, SEQ, 8, generator=rng, dtype=torch.float64)
    before = before.expand(SEQ, -1, -1)
    after = before + torch.eye(SEQ, dtype=torch.float64)[..., None]  # each text, another token
    changed = [after != before]
    for _ in LAYERS:
        layer = MultiHeadAttention(8, 2).double().requires_grad_(False)
        for weight in layer.parameters():
            weight.copy_(torch.randn(weight.shape, generator=rng, dtype=torch.float64) / 3)
        before, after = (x + layer(x, mask=mask.bool())[0] for x in (before, after))
        changed.append((after - before).abs() > 1e-11)
    measured = torch.stack([change.any(-1) for change in changed], dim=1)
    assert measured.equal(reached.bool())


@pytest.mark.parametrize(("pattern", "width"), EACH)
def test_a_tile_is_computed_where_any_pair_of_it_meets(explorer, pattern, width):
    mask, computed, _ = tensors(explorer, pattern, width)
    assert mask.bool().equal(PATTERNS[pattern](width))
    for block, count in zip(BLOCKS, computed.tolist(), strict=True):
        corners = range(0, SEQ, block)
        tiles = [mask[r : r + block, c : c + block] for r in corners for c in corners]
        assert count == sum(tile.numel() for tile in tiles if tile.any())
    assert computed[0] == mask.sum()


def test_what_the_page_says_about_it(explorer):
    def counts(pattern, width, token):
        return tensors(explorer, pattern, width)[2][token].sum(-1).tolist()

    assert counts("window", 4, 0) == [1, 3, 5, 7, 9]
    assert counts("window and a global token", 4, 0) == [1, 4, 24, 24, 24]
    assert counts("causal window", 4, 1) == counts("causal window and a sink", 4, 1)
    assert counts("strided", 4, 0)[2] == counts("fixed", 4, 0)[2] == 24
