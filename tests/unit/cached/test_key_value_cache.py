import pytest
import torch

from attention.cached.key_value_cache import KeyValueCache
from tests.unit.refusals import refusals


def test_it_returns_what_was_written_in_order():
    cache = KeyValueCache(2, 3, 7, 4, dtype=torch.float64)
    keys, values = torch.randn(2, 2, 3, 6, 4, dtype=torch.float64)
    for start, stop in ((0, 1), (1, 4), (4, 6)):
        held_keys, held_values = cache.append(keys[:, :, start:stop], values[:, :, start:stop])
        assert cache.length == stop
        assert torch.equal(held_keys, keys[:, :, :stop])
        assert torch.equal(held_values, values[:, :, :stop])


def test_it_returns_views_and_keeps_copies():
    cache = KeyValueCache(1, 2, 4, 3)
    key, value = torch.ones(2, 1, 2, 2, 3)
    keys, values = cache.append(key, value)
    assert keys.data_ptr() == cache.keys.data_ptr()
    assert values.data_ptr() == cache.values.data_ptr()
    key.zero_()
    value.zero_()
    assert keys.all()
    assert values.all()


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 4), (torch.bfloat16, 2)])
def test_bytes_are_what_the_formula_says(dtype, size):
    """2 · layers · kv_heads · d_key · length · bytes, for each sequence of the batch."""
    layers, batch, kv_heads, d_key, length = 3, 2, 4, 16, 100
    caches = [KeyValueCache(batch, kv_heads, length, d_key, dtype=dtype) for _ in range(layers)]
    formula = 2 * layers * kv_heads * d_key * length * size * batch
    assert sum(cache.nbytes for cache in caches) == formula
    storages = [x.untyped_storage().nbytes() for c in caches for x in (c.keys, c.values)]
    assert sum(storages) == formula


K = torch.zeros(2, 3, 1, 4)


def filled(batch=2, n_kv_heads=3, max_length=5, d_key=4, **kwargs):
    cache = KeyValueCache(batch, n_kv_heads, max_length, d_key, **kwargs)
    cache.append(K.expand(2, 3, 4, 4), K.expand(2, 3, 4, 4))
    return cache


WANTED = "and this cache takes (2, 3, 1, 4); a cache belongs to one layer and one batch"
REFUSED = {
    "too many tokens": (
        lambda: filled().append(K.expand(2, 3, 2, 4), K.expand(2, 3, 2, 4)),
        ValueError,
        "the cache holds 4 of max_length=5 tokens, and 2 more do not fit; "
        "make it with max_length=6 or more",
    ),
    "another batch": (
        lambda: filled().append(K[:1], K[:1]),
        ValueError,
        f"key has shape (batch, kv_heads, new, d_key) = (1, 3, 1, 4), {WANTED}",
    ),
    "another dtype": (
        lambda: filled().append(K.half(), K.half()),
        TypeError,
        "key is torch.float16, and this cache holds torch.float32; make it with "
        "dtype=torch.float16",
    ),
    "gradients": (
        lambda: filled().append(K.clone().requires_grad_(), K),
        ValueError,
        "key asks for gradients, which a cache cannot give; decode inside torch.no_grad()",
    ),
}


test_bad_input_is_refused_with_a_reason = refusals(REFUSED)


def test_what_does_not_fit_changes_nothing():
    cache = filled()
    with pytest.raises(ValueError, match="do not fit"):
        cache.append(K.expand(2, 3, 2, 4) + 1, K.expand(2, 3, 2, 4) + 1)
    assert cache.length == 4
    assert not cache.keys.any()
