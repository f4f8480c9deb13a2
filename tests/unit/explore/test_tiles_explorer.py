"""The explorer of tiles: after the last tile a query holds attention, before it that so far."""

import math

import pytest
import torch

from attention import split_heads
from attention.explore import tiles_explorer
from attention.explore.tiles import HEAD, SEQ, TALK, TILES
from attention.trained import last_speaker
from attention.trained.last_speaker import WORDS, new_talks
from tests.unit.explore.test_explore import frame, stored

EACH = [(tile, causal) for tile in TILES for causal in ("off", "on")]


@pytest.fixture(scope="module")
def explorer():
    return tiles_explorer()


@pytest.fixture(scope="module")
def qkv():
    """The head's queries, keys and values, (seq, d_key)."""
    model = last_speaker.load("rotary").requires_grad_(False).double()
    x, attention = model.embed(new_talks(SEQ).token_ids[[TALK]]), model.attention
    layers = (attention.w_q, attention.w_k, attention.w_v)
    q, k, v = (split_heads(layer(x), attention.n_heads) for layer in layers)
    return [each[0, HEAD] for each in (*attention.attend.transform(q, k), v)]


def tensors(explorer, tile, causal):
    held = frame(explorer, tile=str(tile), causal=causal)
    names = ("scores", "states", "outputs", "errors", "reads")
    return [stored(explorer, held[name]).double() for name in names]


@pytest.mark.parametrize(("tile", "causal"), EACH)
def test_each_line_is_the_attention_over_the_keys_read_so_far(explorer, qkv, tile, causal):
    q, k, v = qkv
    scores, states, outputs, errors, _ = tensors(explorer, tile, causal)
    expected = q @ k.T / math.sqrt(q.shape[-1])
    if causal == "on":
        expected = expected.masked_fill(torch.ones(SEQ, SEQ).triu(1).bool(), -math.inf)
    torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-5)
    end = expected.softmax(-1) @ v
    for nth in range(SEQ // tile):
        seen = expected[:, : (nth + 1) * tile]
        maximum = seen.max(-1).values
        total = (seen - maximum[:, None]).exp().sum(-1)
        so_far = seen.softmax(-1) @ v[: (nth + 1) * tile]
        close = {"atol": 1e-5, "rtol": 1e-5}
        torch.testing.assert_close(states[:, nth, 0], maximum, **close)
        torch.testing.assert_close(states[:, nth, 2], total, **close)
        torch.testing.assert_close(outputs[:, nth], so_far, **close)
        torch.testing.assert_close(errors[:, nth, 0], (so_far - end).abs().amax(-1), **close)
    assert errors[:, -1].max() < 1e-9


@pytest.mark.parametrize(("tile", "causal"), EACH)
def test_its_factor_brings_the_old_maximum_to_the_new_one(explorer, tile, causal):
    _, states, *_ = tensors(explorer, tile, causal)
    maximum, factor = states[..., 0], states[..., 1]
    assert factor[:, 0].eq(0.0).all()  # nothing came before
    expected = (maximum[:, :-1] - maximum[:, 1:]).exp()
    torch.testing.assert_close(factor[:, 1:], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("tile", TILES)
def test_tiles_in_the_future_are_skipped(explorer, tile):
    *_, reads = tensors(explorer, tile, "on")
    place = torch.arange(SEQ) // tile
    assert reads.bool().equal(torch.arange(SEQ // tile) <= place[:, None])
    assert tensors(explorer, tile, "off")[-1].eq(1.0).all()


def test_its_talk_has_names_whose_scores_grow(explorer):
    held = frame(explorer, tile="1", causal="on")
    assert held["words"] == [WORDS[i] for i in new_talks(SEQ).token_ids[TALK]]
    factors = stored(explorer, held["states"])[-1, :, 1]
    assert (factors < 1.0).sum() == 3
