"""The caches of well-known models beside this book's caches, and beside what papers say of them."""

import re

import pytest
import torch

from attention import KeyValueCache, LatentCache, MultiHeadAttention
from attention.cost import dense
from attention.cost.caches import MODELS, cache_bytes
from attention.cost.decode import decode_step_cost
from tests.unit.refusals import refusals

# The width that the papers and configurations give; a head is that divided by their number.
D_MODEL = {
    "GPT-2": 768,
    "GPT-2 XL": 1600,
    "Llama 2 7B": 4096,
    "Falcon 7B": 4544,
    "Llama 2 70B": 8192,
    "Mistral 7B": 4096,
    "Llama 3 8B": 4096,
}


@pytest.mark.parametrize("name", MODELS)
def test_the_bytes_are_those_of_the_books_caches(name):
    """Made on the meta device, which takes no memory."""
    model, half = MODELS[name], {"dtype": torch.float16, "device": "meta"}
    taken = 0
    for kind in model.kinds:
        if kind.d_latent:
            cache = LatentCache(1, 1000, kind.d_latent + kind.d_rotary, **half)
        else:
            cache = KeyValueCache(1, kind.n_kv_heads, 1000, kind.d_key, **half)
        taken += kind.layers * cache.nbytes
    assert cache_bytes(model, 1000) == taken
    assert cache_bytes(model) * 1000 == cache_bytes(model, 1000)
    assert cache_bytes(model, 1000, bytes_per_number=1) * 2 == cache_bytes(model, 1000)


@pytest.mark.parametrize("name", D_MODEL)
def test_the_heads_fill_the_width(name):
    model = MODELS[name]
    assert model.n_heads * model.d_key == D_MODEL[name]
    with torch.device("meta"):
        layer = MultiHeadAttention(D_MODEL[name], model.n_heads, n_kv_heads=model.n_kv_heads)
    assert layer.d_key == model.d_key
    count = dense.grouped_query(100, D_MODEL[name], model.n_heads, model.n_kv_heads)
    assert count.cache == 100 * model.numbers


def test_what_papers_say_of_them():
    """Liu et al. 2024, table 1: as much as 2.25 groups, 9/2 · d_key numbers."""
    latent = MODELS["DeepSeek-V2"]
    assert latent.numbers == 9 * latent.d_key // 2 == 2.25 * 2 * latent.d_key
    # Ainslie et al. 2023, §2.2: a group keeps n_heads / n_kv_heads times less.
    grouped = MODELS["Llama 2 70B"]
    assert grouped._replace(n_kv_heads=64).numbers == 8 * grouped.numbers
    # Jiang et al. 2023, §2: at 32,000 tokens the window's cache is 8 times smaller.
    windowed = MODELS["Mistral 7B"]
    assert cache_bytes(windowed._replace(window=None), 32 * 1024) == 8 * cache_bytes(
        windowed, 32 * 1024
    )


def test_a_window_keeps_no_more():
    model = MODELS["Mistral 7B"]
    assert cache_bytes(model, 4095) == 4095 * cache_bytes(model)
    assert cache_bytes(model, 4096) == cache_bytes(model, 4097) == 4096 * cache_bytes(model)


def test_of_two_kinds_of_layers_each_keeps_its_own():
    model = MODELS["Gemma 4 31B"]
    windows = model.beside
    assert sum(kind.layers for kind in model.kinds) == 60
    for n in (1, 1024, 1025, 100_000):
        whole = model._replace(beside=None)
        assert cache_bytes(model, n) == cache_bytes(whole, n) + cache_bytes(windows, n)
        assert decode_step_cost(model, n).flops == sum(
            decode_step_cost(kind, n).flops for kind in (whole, windows)
        )


def test_every_row_says_where_it_was_read():
    """A paper, and the file that the model is published with."""
    for model in (kind for each in MODELS.values() for kind in each.kinds):
        assert re.search(
            r" 20\d\d.*; (github\.com|huggingface\.co)/\S+, \S+\.(json|py)$", model.source
        )


test_bad_input = refusals(
    [
        (lambda: cache_bytes(MODELS["GPT-2"], 0), "length must be at least 1, got 0"),
        (
            lambda: cache_bytes(MODELS["GPT-2"], bytes_per_number=0.5),
            TypeError,
            "bytes_per_number must be an int, got 0.5",
        ),
        (lambda: decode_step_cost(MODELS["GPT-2"], 0), "length must be at least 1, got 0"),
        (
            lambda: decode_step_cost(MODELS["GPT-2"], 9, bytes_per_number=0.5),
            TypeError,
            "bytes_per_number must be an int, got 0.5",
        ),
    ]
)
