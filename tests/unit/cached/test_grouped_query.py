import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from attention import MultiHeadAttention, causal_mask, padding_mask
from attention.cached.grouped_query import grouped_attention, pool_kv_heads
from attention.heads import merge_heads, split_heads
from tests.unit.cases import assert_close, assert_gradients_close, randomise
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor


@st.composite
def grouped_qkv(draw):
    """Draw query, key, value and a mask that differs in none, some or all of its axes."""
    batch, n_kv_heads, group = (draw(st.integers(1, 3)) for _ in range(3))
    n_queries, n_keys, d_key, d_value = (draw(st.integers(1, 5)) for _ in range(4))
    n_heads = n_kv_heads * group
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    query, key, value = (
        torch.randn(batch, *shape, dtype=torch.float64, generator=rng).requires_grad_()
        for shape in (
            (n_heads, n_queries, d_key),
            (n_kv_heads, n_keys, d_key),
            (n_kv_heads, n_keys, d_value),
        )
    )
    shape = [batch, n_heads, n_queries, n_keys][draw(st.sampled_from((0, 2))) :]
    shape = [1 if draw(st.booleans()) else size for size in shape]
    mask = torch.rand(shape, generator=rng) < 0.6
    return query, key, value, draw(st.sampled_from([None, mask]))


@settings(max_examples=60)
@given(grouped_qkv(), st.booleans())
def test_equals_attention_to_repeated_keys_in_values_and_gradients(qkv, need_weights):
    """Query head h attends to head h // group of keys and values."""
    query, key, value, mask = qkv
    output, weights = grouped_attention(query, key, value, mask, need_weights=need_weights)
    heads = torch.arange(query.shape[1]) // (query.shape[1] // key.shape[1])
    exp = (query @ key[:, heads].mT / query.shape[-1] ** 0.5).exp()
    exp = exp if mask is None else exp * mask
    total = exp.sum(-1, keepdim=True)
    wanted = exp / torch.where(total == 0, 1.0, total)
    expected = wanted @ value[:, heads]
    assert_close(output, expected)
    assert_gradients_close(output, expected, [query, key, value])
    assert (weights is not None) == need_weights
    if need_weights:
        assert_close(weights, wanted)


def test_keys_are_never_repeated():
    """With one query, as in decoding, no tensor is as large as the repeated keys."""
    query, key, value = torch.randn(1, 8, 1, 64), *torch.randn(2, 1, 2, 100, 64)
    for need_weights in (True, False):
        with LargestTensor() as largest, torch.no_grad():
            grouped_attention(query, key, value, need_weights=need_weights)
        assert largest.numel <= key.numel()


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("need_weights", [True, False])
def test_equals_torchs_function_in_values_and_gradients(n_kv_heads, need_weights):
    rng = torch.Generator().manual_seed(0)
    module = MultiHeadAttention(12, 4, n_kv_heads=n_kv_heads).double()
    randomise(module, rng)
    x = torch.randn(2, 5, 12, dtype=torch.float64, generator=rng).requires_grad_()
    y = torch.randn(2, 6, 12, dtype=torch.float64, generator=rng).requires_grad_()
    padding = padding_mask(torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]]), 0)
    for mask in (None, padding, causal_mask(5, 6), padding & causal_mask(5, 6)):
        output, _ = module(x, y, mask=mask, need_weights=need_weights)
        q = split_heads(module.w_q(x), 4)
        k, v = (split_heads(w(y), n_kv_heads) for w in (module.w_k, module.w_v))
        theirs = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
        expected = module.w_o(merge_heads(theirs))
        assert_close(output, expected)
        wanted = [x, y, *module.parameters()]
        assert_gradients_close(output, expected, wanted)


def pooled(module: MultiHeadAttention, n_kv_heads: int) -> MultiHeadAttention:
    """Replace each key and value head by the mean of its group, head by head, row by row."""
    module, group = copy.deepcopy(module), module.n_heads // n_kv_heads
    for w in (module.w_k, module.w_v):
        for parameter in (w.weight, w.bias):
            heads = parameter.detach().clone().split(module.d_key)
            for h in range(module.n_heads):
                first = h // group * group
                mean = sum(heads[first : first + group]) / group
                parameter.data[h * module.d_key : (h + 1) * module.d_key] = mean
    return module


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
def test_from_multi_head_is_exact_where_the_heads_of_a_group_are_equal(n_kv_heads):
    module = MultiHeadAttention(12, 6, dropout=0.25).double().eval()
    randomise(module, torch.Generator().manual_seed(1))
    equal_heads = pooled(module, n_kv_heads)
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    expected, expected_weights = equal_heads(x)
    # Pooling what is equal already changes nothing, and pooling what differs gives those means.
    for source in (equal_heads, module):
        ours = pool_kv_heads(source, n_kv_heads)
        output, weights = ours(x)
        assert_close(output, expected)
        assert_close(weights, expected_weights)
    assert (ours.attend.dropout, ours.training) == (0.25, False)
    assert ours.w_k.weight.dtype == torch.float64
    assert ours.w_k.weight.shape == (n_kv_heads * 2, 12)


@pytest.mark.parametrize("n_kv_heads", [1, 2])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("pieces", [[1] * 9, [4, 1, 3, 1]], ids=str)
def test_decoding_with_a_cache_equals_the_causal_pass(n_kv_heads, need_weights, pieces):
    """Three layers, token by token and several at a time."""
    rng = torch.Generator().manual_seed(2)
    layers = [MultiHeadAttention(16, 4, n_kv_heads=n_kv_heads).double() for _ in range(3)]
    for layer in layers:
        randomise(layer, rng)
    x = expected = torch.randn(2, 9, 16, generator=rng).double()
    for layer in layers:
        expected = expected + layer(expected, mask=causal_mask(9))[0]

    caches = [layer.new_cache(batch=2, max_length=9) for layer in layers]
    outputs = []
    with torch.no_grad():
        for new in x.split(pieces, dim=1):
            y = new
            for layer, cache in zip(layers, caches, strict=True):
                attended, weights = layer(y, causal=True, cache=cache, need_weights=need_weights)
                assert weights is None or weights.shape == (2, 4, new.shape[1], cache.length)
                y = y + attended
            outputs.append(y)
    assert_close(torch.cat(outputs, dim=1), expected)
    assert [cache.length for cache in caches] == [9] * 3
    assert sum(c.nbytes for c in caches) == 2 * 3 * n_kv_heads * 4 * 9 * 8 * 2  # batch 2


def test_a_padding_mask_counts_the_cached_keys():
    module = MultiHeadAttention(8, 4, n_kv_heads=2).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    ids = torch.tensor(
        [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]
    )  # padding in front, as in batched decoding
    expected, _ = module(x, mask=padding_mask(ids, 0) & causal_mask(5))
    cache = module.new_cache(2, 5)
    with torch.no_grad():
        for i in range(5):
            mask = padding_mask(ids[:, : i + 1], 0)
            output, _ = module(x[:, i : i + 1], mask=mask, cache=cache)
            assert_close(output, expected[:, i : i + 1])


def test_parameters_have_the_promised_names_and_shapes():
    state = MultiHeadAttention(12, 6, n_kv_heads=2).state_dict()
    shapes = {name: tuple(x.shape) for name, x in state.items()}
    wide, narrow = ((12, 12), (12,)), ((4, 12), (4,))
    parts = {"w_q": wide, "w_k": narrow, "w_v": narrow, "w_o": wide}
    assert shapes == {
        f"{w}.{name}": shape
        for w, pair in parts.items()
        for name, shape in zip(("weight", "bias"), pair, strict=True)
    }
    bare = MultiHeadAttention(12, 6, n_kv_heads=2, bias=False)
    assert list(bare.state_dict()) == list(state)[::2]
    assert "n_heads=6, n_kv_heads=2" in repr(MultiHeadAttention(12, 6, n_kv_heads=2))


Q, K = torch.zeros(2, 6, 5, 4), torch.zeros(2, 3, 7, 4)
X = torch.zeros(2, 5, 8)
GQA = MultiHeadAttention(8, 4, n_kv_heads=2)
REFUSED = {
    "heads that do not divide": (
        lambda: grouped_attention(Q, K[:, :1].expand(2, 4, 7, 4), K[:, :1].expand(2, 4, 7, 4)),
        ValueError,
        "heads of key=4 does not divide heads of query=6; it can be 1, 2, 3 or 6",
    ),
    "values of other heads": (
        lambda: grouped_attention(Q, K, K[:, :1], need_weights=False),
        ValueError,
        "key and value must have the same kv_heads, got key (2, 3, 7, 4) and value (2, 1, 7, 4)",
    ),
    "a mask for the heads of keys": (
        lambda: grouped_attention(Q, K, K, torch.ones(2, 3, 5, 7) == 1),
        ValueError,
        "mask of shape (2, 3, 5, 7) does not broadcast to (batch, heads, query, key)"
        " = (2, 6, 5, 7)",
    ),
    "heads of keys that do not divide": (
        lambda: MultiHeadAttention(16, 8, n_kv_heads=3),
        ValueError,
        "n_kv_heads=3 does not divide n_heads=8; it can be 1, 2, 4 or 8",
    ),
    "a cache in cross-attention": (
        lambda: GQA(X, X, cache=GQA.new_cache(2, 5)),
        ValueError,
        "a cache is for self-attention, where each step adds keys, got key or value too",
    ),
}


test_bad_input_is_refused = refusals(REFUSED)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize(("n_queries", "n_keys"), [(5, 5), (5, 8), (5, 2), (1, 4)])
@pytest.mark.parametrize("masked", [False, True])
def test_the_causal_flag_is_the_mask(masked, n_queries, n_keys, need_weights):
    """In values and gradients, beside another mask too; the last query sees the last key."""
    rng = torch.Generator().manual_seed(n_keys)
    inputs = [
        torch.randn(2, n_heads, n, 4, dtype=torch.float64, generator=rng).requires_grad_()
        for n_heads, n in ((4, n_queries), (2, n_keys), (2, n_keys))
    ]
    mask = torch.rand(2, 1, 1, n_keys, generator=rng) > 0.3 if masked else None
    past = causal_mask(n_queries, n_keys)
    expected, _ = grouped_attention(*inputs, past if mask is None else past & mask)
    output, _ = grouped_attention(*inputs, mask, causal=True, need_weights=need_weights)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_in_training_only(need_weights, causal):
    module, x = MultiHeadAttention(8, 4, n_kv_heads=2, dropout=0.5), torch.randn(1, 50, 8)
    expected, _ = module.eval()(x, mask=causal_mask(50) if causal else None)
    assert_close(module(x, causal=causal, need_weights=need_weights)[0], expected)
    dropped, _ = module.train()(x, causal=causal, need_weights=need_weights)
    assert not torch.allclose(dropped, expected, atol=1e-3)
