import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from attention.cached.grouped_query import grouped_attention
from attention.masks import causal_mask
from tests.unit.cases import assert_close, gradients


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


@given(grouped_qkv(), st.booleans())
def test_equals_torchs_grouped_attention_in_values_and_gradients(qkv, need_weights):
    query, key, value, mask = qkv
    output, weights = grouped_attention(query, key, value, mask, need_weights=need_weights)
    # torch's gradient of a row with nothing to attend to differs between versions: 0 is promised.
    sees = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask.any(-1, keepdim=True)
    expected = F.scaled_dot_product_attention(
        query, key, value, None if mask is None else mask | ~sees, enable_gqa=True
    ).masked_fill(~sees, 0.0)
    assert_close(output, expected)
    for ours, theirs in zip(
        gradients([output], [query, key, value]),
        gradients([expected], [query, key, value]),
        strict=True,
    ):
        assert_close(ours, theirs)
    assert (weights is not None) == need_weights


@given(grouped_qkv())
def test_equals_a_loop_over_heads(qkv):
    """Query head h attends to head h // group of keys and values, row by row."""
    query, key, value, mask = qkv
    (batch, n_heads, n_queries, d_key), n_keys = query.shape, key.shape[2]
    group = n_heads // key.shape[1]
    output, weights = grouped_attention(query, key, value, mask)
    allowed = torch.ones(batch, n_heads, n_queries, n_keys, dtype=torch.bool)
    if mask is not None:
        allowed = mask.expand_as(allowed)
    for b in range(batch):
        for h in range(n_heads):
            for q in range(n_queries):
                exp = (key[b, h // group] @ query[b, h, q] / d_key**0.5).exp() * allowed[b, h, q]
                row = exp / exp.sum() if exp.any() else exp
                assert_close(weights[b, h, q], row)
                assert_close(output[b, h, q], row @ value[b, h // group])


def test_keys_are_never_repeated():
    """With one query, as in decoding, nothing is made that is as large as the repeated keys."""
    largest = 0

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    query, key, value = torch.randn(1, 8, 1, 64), *torch.randn(2, 1, 2, 100, 64)
    for need_weights in (True, False):
        with Sizes(), torch.no_grad():
            grouped_attention(query, key, value, need_weights=need_weights)
    assert largest == key.numel()


def test_no_input_is_modified():
    query, key, value = torch.randn(2, 4, 5, 3), *torch.randn(2, 2, 2, 5, 3)
    mask = causal_mask(5)
    inputs = (query, key, value, mask)
    before = [x.clone() for x in inputs]
    with torch.no_grad():
        grouped_attention(query, key, value, mask)
        grouped_attention(query, key, value, mask, need_weights=False)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))


Q, K = torch.zeros(2, 6, 5, 4), torch.zeros(2, 3, 7, 4)
REFUSED = {
    "heads that do not divide": (
        lambda: grouped_attention(Q, K[:, :1].expand(2, 4, 7, 4), K[:, :1].expand(2, 4, 7, 4)),
        "kv_heads=4 does not divide heads=6; it can be 1, 2, 3 or 6",
    ),
    "values of other heads": (
        lambda: grouped_attention(Q, K, K[:, :1], need_weights=False),
        "key and value must have the same kv_heads, got key (2, 3, 7, 4) and value (2, 1, 7, 4)",
    ),
    "another batch": (
        lambda: grouped_attention(Q[:1], K, K),
        "query and key must agree in every axis before the last two (the batch)",
    ),
    "fewer values": (
        lambda: grouped_attention(Q, K, K[:, :, 1:]),
        "key and value must have the same length",
    ),
    "keys of another width": (
        lambda: grouped_attention(Q, K[..., 1:], K),
        "the last axis of key must be d_key=4, got 3 in shape (2, 3, 7, 3)",
    ),
    "a mask of three axes": (
        lambda: grouped_attention(Q, K, K, torch.ones(2, 5, 7) == 1),
        "mask has 3 axes, (2, 5, 7), and must have 2 or 4",
    ),
    "a mask for the heads of keys": (
        lambda: grouped_attention(Q, K, K, torch.ones(2, 3, 5, 7) == 1),
        "mask of shape (2, 3, 5, 7) does not broadcast to (batch, heads, query, key)"
        " = (2, 6, 5, 7)",
    ),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_a_reason(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
