import pytest
import torch

from attention.cached.key_value_cache import KeyValueCache
from attention.cached.rolling_cache import RollingCache
from attention.multihead import MultiHeadAttention
from attention.sparse.sinks import sink_mask
from tests.unit.cases import assert_close, randomise
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor


def tokens(count, *, batch=2, heads=3, d_key=4, dtype=torch.float64):
    """Keys and values of so many tokens, one after another."""
    rng = torch.Generator().manual_seed(count)
    pairs = torch.randn(count, 2, batch, heads, 1, d_key, dtype=torch.float64, generator=rng)
    return pairs.to(dtype)


SIZES = [(4, 0), (3, 2), (0, 0), (0, 3), (1, 5), (30, 2)]


@pytest.mark.parametrize(("window", "n_sinks"), SIZES)
def test_it_holds_what_the_mask_shows_the_new_token(window, n_sinks):
    """Each key where `positions` says, and all of those that the mask's last row has, once."""
    cache = RollingCache(2, 3, window, n_sinks, 4, dtype=torch.float64)
    written = tokens(23)
    assert cache.positions.tolist() == []
    for i, (key, value) in enumerate(written):
        keys, values = cache.append(key, value)
        seen = sink_mask(i + 1, window, n_sinks)[-1].nonzero().flatten().tolist()
        positions = cache.positions
        assert cache.length == i + 1
        assert sorted(positions.tolist()) == seen
        assert torch.equal(keys, torch.cat(list(written[positions, 0]), dim=2))
        assert torch.equal(values, torch.cat(list(written[positions, 1]), dim=2))


def test_memory_is_allocated_once_and_views_are_returned():
    cache = RollingCache(2, 3, window=4, n_sinks=2, d_key=4, dtype=torch.float64)
    where, size = (cache.keys.data_ptr(), cache.values.data_ptr()), cache.nbytes
    assert size == KeyValueCache(2, 3, 2 + 4 + 1, 4, dtype=torch.float64).nbytes
    for key, value in tokens(40):
        with LargestTensor() as largest:
            keys, values = cache.append(key, value)
        before = keys[:, :, cache.positions.argmax()].clone()
        key.zero_()
        assert torch.equal(keys[:, :, cache.positions.argmax()], before)  # a copy is kept
        assert largest.numel <= keys.numel()  # views; nothing beside them
        assert (keys.data_ptr(), values.data_ptr()) == where
        assert cache.nbytes == size
    assert sum(x.untyped_storage().nbytes() for x in (cache.keys, cache.values)) == size


@pytest.mark.parametrize("prompt", [1, 2, 5, 7])
def test_tokens_that_all_fit_may_come_at_once(prompt):
    """And one at a time from there on, with the ring as if they had come one by one."""
    one_by_one, at_once = (
        RollingCache(2, 3, window=4, n_sinks=2, d_key=4, dtype=torch.float64) for _ in range(2)
    )
    written = tokens(20)
    for key, value in written[:prompt]:
        one_by_one.append(key, value)
    at_once.append(*(torch.cat(list(written[:prompt, part]), dim=2) for part in (0, 1)))
    for key, value in written[prompt:]:
        ours, theirs = at_once.append(key, value), one_by_one.append(key, value)
        assert torch.equal(torch.cat(ours), torch.cat(theirs))
    assert torch.equal(at_once.positions, one_by_one.positions)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(("window", "n_sinks"), [(4, 1), (0, 0), (0, 3), (5, 0)])
def test_writing_with_it_equals_the_pass_under_the_mask(window, n_sinks, need_weights):
    """Three layers, 13 tokens: also where one layer dropped what another has handed on."""
    rng = torch.Generator().manual_seed(2)
    layers = [MultiHeadAttention(16, 4, n_kv_heads=2).double() for _ in range(3)]
    for layer in layers:
        randomise(layer, rng)
    x = expected = torch.randn(2, 13, 16, generator=rng).double()
    for layer in layers:
        expected = expected + layer(expected, mask=sink_mask(13, window, n_sinks))[0]

    prompt = min(13, n_sinks + window + 1)  # what fits comes at once, or one by one
    for pieces in ([1] * 13, [prompt] + [1] * (13 - prompt)):
        caches = [RollingCache(2, 2, window, n_sinks, 4, dtype=torch.float64) for _ in layers]
        outputs = []
        with torch.no_grad():
            for y in x.split(pieces, dim=1):
                for layer, cache in zip(layers, caches, strict=True):
                    attended, weights = layer(
                        y, causal=True, cache=cache, need_weights=need_weights
                    )
                    held = min(cache.length, n_sinks + window + 1)
                    assert weights is None or weights.shape == (2, 4, y.shape[1], held)
                    y = y + attended
                outputs.append(y)
        assert_close(torch.cat(outputs, dim=1), expected)


K = torch.zeros(2, 3, 1, 4)


def filled(written=4, window=3, n_sinks=2):
    cache = RollingCache(2, 3, window, n_sinks, 4)
    for _ in range(written):
        cache.append(K, K)
    return cache


GQA = MultiHeadAttention(12, 3, n_kv_heads=3)
X = torch.zeros(2, 1, 12)
WANTED = "and this cache takes (2, 3, 1, 4); a cache belongs to one layer and one batch"
REFUSED = {
    "two tokens where one fits": (
        lambda: filled(5).append(K.expand(2, 3, 2, 4), K.expand(2, 3, 2, 4)),
        ValueError,
        "2 tokens at once do not fit after 5 in a cache of n_sinks + window + 1 = 6: a later one "
        "would replace a key that an earlier one still sees; from there on append one token at a "
        "time",
    ),
    "another batch": (
        lambda: filled().append(K[:1], K[:1]),
        ValueError,
        f"key has shape (batch, kv_heads, new, d_key) = (1, 3, 1, 4), {WANTED}",
    ),
    "a mask beside it": (
        lambda: GQA(X, mask=torch.ones(1, 5, dtype=torch.bool), cache=filled()),
        ValueError,
        "a RollingCache takes no mask: it drops tokens",
    ),
}


test_bad_input_is_refused_with_a_reason = refusals(REFUSED)


@pytest.mark.parametrize("written", [5, 20])
def test_what_is_refused_changes_nothing(written):
    cache = filled(written)
    positions = cache.positions
    with pytest.raises(ValueError, match="do not fit"):
        cache.append(K.expand(2, 3, 2, 4) + 1, K.expand(2, 3, 2, 4) + 1)
    assert cache.length == written
    assert torch.equal(cache.positions, positions)
    assert not cache.keys.any()
    assert not cache.values.any()
