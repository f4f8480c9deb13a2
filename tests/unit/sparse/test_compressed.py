import math
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import (
    CompressedAttention,
    MultiHeadAttention,
    compressed_attention,
    fused_attention,
)
from tests.unit.cases import assert_close, assert_gradients_close, randomise
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor, qkv
from tests.unit.sparse.test_selection import random_choice


def one_query_after_another(query, key, value, gate, kept, *, block, window, selected=None):
    """The rule in a loop: what a query sees is listed, token by token and entry by entry."""
    batch, heads, seq, _ = query.shape
    rows = []
    for b, h, t in torch.cartesian_prod(*map(torch.arange, (batch, heads, seq))).tolist():
        near = [j for j in range(max(0, t - window), t + 1) if kept[b, j]]
        keys, values = list(key[b, h, near]), list(value[b, h, near])
        over = range((t + 1) // block)
        listed = over if selected is None else selected[b, h % selected.shape[1], t].tolist()
        for number in listed:
            tokens = torch.arange(number * block, (number + 1) * block)
            tokens = tokens[kept[b, tokens]] if number in over else tokens[:0]
            if len(tokens):
                weights = gate[b, h, tokens].softmax(0)
                keys.append((weights * key[b, h, tokens]).sum(0))
                values.append((weights * value[b, h, tokens]).sum(0))
        if keys:
            scores = torch.stack(keys) @ query[b, h, t] / math.sqrt(query.shape[-1])
            rows.append(scores.softmax(0) @ torch.stack(values))
        else:
            rows.append(0 * value[b, h, t])
    return torch.stack(rows).view(batch, heads, seq, -1) + 0 * gate.sum()  # of an unused gate, too


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 11)),
    st.integers(1, 5),
    st.integers(1, 6),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_equals_what_each_query_sees_listed_one_by_one(shape, block, window, chooses, seed):
    """Any block and window, one gate for a token or one for each number, choices and padding."""
    batch, heads, seq = shape
    rng = torch.Generator().manual_seed(seed)
    widths = (3, 3, 4, 1) if seed % 3 else (3, 3, 3, 3)
    inputs = [
        torch.randn(*shape, width, dtype=torch.float64, generator=rng).requires_grad_()
        for width in widths
    ]
    kept = torch.ones(batch, seq, dtype=torch.bool)
    if seed % 2:
        kept = torch.rand(batch, seq, generator=rng) < 0.7
    selected = None
    if chooses:
        n_blocks = -(-seq // block)
        choice_of = (batch, heads if seed % 5 else 1, seq)
        selected = random_choice(choice_of, n_blocks, 1 + seed % n_blocks, seed)
    options = {"block": block, "window": window, "selected": selected}
    mask = kept[:, None, None] if seed % 2 else None
    output = compressed_attention(*inputs, mask, **options)
    expected = one_query_after_another(*inputs, kept, **options)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)
    for numbers in (1, 200):  # without gradients in pieces
        with torch.no_grad(), mock.patch("attention.sparse.blocks.NUMBERS_AT_ONCE", numbers):
            assert_close(compressed_attention(*inputs, mask, **options), expected)


@pytest.mark.parametrize("seq", [1, 12, 13])
def test_is_causal_attention_where_no_block_is_over(seq):
    inputs = qkv(seq, seed=seq)
    gate = torch.randn(*inputs[0].shape[:3], 1, dtype=torch.float64)
    output = compressed_attention(*inputs, gate, block=seq + 1, window=seq)
    expected = fused_attention(*inputs, causal=True)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)


def test_what_comes_later_moves_nothing():
    """Every token's key, value and gate: the first output that moves is its own."""
    query, key, value = (x.detach() for x in qkv(14, seed=0))
    gate = torch.randn(*key.shape[:3], 1, dtype=torch.float64)
    options = {"block": 4, "window": 3}
    whole = compressed_attention(query, key, value, gate, **options)
    for j in range(14):
        moved = [x.clone() for x in (key, value, gate)]
        for x in moved:
            x[:, :, j] += 1
        now = compressed_attention(query, *moved, **options)
        changed = (now - whole).abs().amax(dim=(0, 1, 3)) > 1e-9
        # In the window up to 3 tokens on, and in the entry from the end of its block on.
        last_of_block = j // 4 * 4 + 3
        expected = [t >= j and (t <= j + 3 or t >= last_of_block) for t in range(14)]
        assert changed.tolist() == expected


def test_the_layer_makes_its_gates_of_keys_and_of_places():
    layer = MultiHeadAttention(8, 2, attend=CompressedAttention(4, block=3, window=2)).double()
    randomise(layer, torch.Generator().manual_seed(1))
    x = torch.randn(2, 10, 8, dtype=torch.float64, requires_grad=True)
    output, weights = layer(x, causal=True)
    q, k, v = (
        w(x).unflatten(-1, (2, 4)).transpose(1, 2) for w in (layer.w_q, layer.w_k, layer.w_v)
    )
    attend = layer.attend
    gate = k @ attend.w_gate.weight.T + attend.place.repeat(4, 1)[:10]
    kept = torch.ones(2, 10, dtype=torch.bool)
    expected = one_query_after_another(q, k, v, gate, kept, block=3, window=2)
    expected = layer.w_o(expected.transpose(1, 2).flatten(2))
    assert weights is None
    assert_close(output, expected)
    assert_gradients_close(output, expected, [x, *layer.parameters()])


def test_holds_no_scores_of_all_pairs():
    """Of 2,048 queries and keys; a few queries at a time, the entries of all and a window."""
    inputs = [torch.randn(1, 2, 2048, 8) for _ in range(3)]
    with torch.no_grad(), LargestTensor() as largest:
        compressed_attention(*inputs, torch.zeros(1, 2, 2048, 1), block=16, window=32)
    assert largest.numel < 2 * 2048 * 2048 / 4


def test_a_window_or_a_block_beyond_the_text_costs_no_more_than_the_text():
    inputs = qkv(20, seed=0)
    gate = torch.zeros(2, 2, 20, 1, dtype=torch.float64)
    with LargestTensor() as largest:
        output = compressed_attention(*inputs, gate, block=10**7, window=10**5)
    assert_close(output, fused_attention(*inputs, causal=True))
    assert largest.numel < 20_000


X = torch.zeros(2, 3, 7, 4)
GATE = torch.zeros(2, 3, 7, 1)
SIZES = {"block": 2, "window": 1}
test_refused = refusals(
    [
        (
            lambda: compressed_attention(X, X, X, GATE[:, :1], **SIZES),
            "gate must have shape (batch, heads, seq, d_gate) = (2, 3, 7) and d_gate 1, or the "
            "width of keys and values where that is one (here 4 and 4), got (2, 1, 7, 1)",
        ),
        (
            lambda: compressed_attention(X, X, X[..., :3], X, **SIZES),
            "gate must have shape (batch, heads, seq, d_gate) = (2, 3, 7) and d_gate 1, or the "
            "width of keys and values where that is one (here 4 and 3), got (2, 3, 7, 4)",
        ),
        (
            lambda: compressed_attention(X, X, X, GATE, block=0, window=1),
            "block must be at least 1, got 0",
        ),
        (
            lambda: compressed_attention(X, X, X, GATE, block=1, window=0),
            "window must be at least 1, got 0",
        ),
        (
            lambda: compressed_attention(
                X, X, X, GATE, **SIZES, selected=torch.full((2, 1, 7, 1), 4)
            ),
            "selected has block 4, and the blocks go from 0 to 3",
        ),
    ]
)
