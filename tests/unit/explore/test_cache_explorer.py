"""The explorer of the cache shows what the book's caches hold, and what each model writes."""

import pytest
import torch

from attention import KeyValueCache, LatentCache
from attention.explore import cache_explorer
from attention.explore.cache import DATES, HEADS, LATENTS, converted, latent_attention
from attention.trained.dates import LETTERS, SIGN_NAMES, load
from tests.unit.explore.test_explore import frame, stored


@pytest.fixture(scope="module")
def explorer():
    return cache_explorer()


@pytest.fixture(scope="module")
def model():
    return load("transformer").requires_grad_(False).double()


@pytest.mark.parametrize("attention", [*HEADS, *LATENTS])
def test_its_bytes_are_those_of_a_cache_in_float32(explorer, attention):
    held = frame(explorer, attention=attention, date="4 may 2031")
    if attention in HEADS:
        cache = KeyValueCache(batch=1, n_kv_heads=HEADS[attention], max_length=11, d_key=12)
    else:
        cache = LatentCache(batch=1, max_length=11, d_latent=LATENTS[attention])
    assert held["nbytes"] == cache.nbytes == 4 * stored(explorer, held["kept"]).numel()


@pytest.mark.parametrize("attention", [*HEADS, *LATENTS])
def test_each_model_writes_what_is_shown(explorer, model, attention):
    for date, right in DATES.items():
        held = frame(explorer, attention=attention, date=date)
        letters = LETTERS.encode_batch([list(date)])
        written = converted(model, attention).write(letters)[0]
        assert held["signs"] == [SIGN_NAMES[sign] for sign in written]
        assert held["read"] == ["start", *held["signs"][:-1]]
        assert held["right"] == [*right, "end"]
        assert stored(explorer, held["weights"]).shape == (11, 4, 11)
        if attention in ("multi-head", "latent, 24 numbers"):
            assert held["signs"] == held["right"]


def test_the_kept_numbers_of_fewer_heads_are_means(explorer):
    """Of the first sign alone: later ones were read after other signs."""
    whole, two, one = (
        stored(explorer, frame(explorer, attention=name, date="4 may 2031")["kept"])[0]
        for name in HEADS
    )
    torch.testing.assert_close(whole.unflatten(0, (2, 2)).mean(1), two)
    torch.testing.assert_close(whole.mean(0, keepdim=True), one)


def test_a_latent_row_as_wide_as_the_model_loses_nothing(model):
    attention = model.transformer.decoder.layers[0].self_attention
    x = torch.randn(2, 7, 48, generator=torch.Generator().manual_seed(0)).double()
    expected, _ = attention(x, causal=True)
    torch.testing.assert_close(latent_attention(attention, 48)(x, causal=True)[0], expected)


@pytest.mark.parametrize("attention", [*HEADS, *LATENTS])
def test_both_attentions_of_the_decoder_are_converted(model, attention):
    layer = converted(model, attention).transformer.decoder.layers[0]
    for part in (layer.self_attention, layer.cross_attention):
        if attention in HEADS:
            assert part.n_kv_heads == HEADS[attention]
        else:
            stacked = torch.cat([part.w_k.weight, part.w_v.weight])
            assert torch.linalg.matrix_rank(stacked) == LATENTS[attention]
