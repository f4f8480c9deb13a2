import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.global_tokens import global_mask
from attention.sparse.sinks import sink_mask
from attention.sparse.union import sparse_attention
from attention.sparse.window import sliding_window_mask
from tests.unit.cases import assert_close, assert_gradients_close
from tests.unit.sparse.cases import (
    assert_equals_dense,
    in_a_loop,
    largest_piece,
    largest_tensor,
    paddings,
    qkv,
)


@given(st.integers(1, 9), st.integers(0, 10), st.integers(0, 10))
def test_a_query_sees_its_window_and_the_first_tokens(seq, window, n_sinks):
    wanted = in_a_loop(
        seq, lambda query, key: key <= query and (query - key <= window or key < n_sinks)
    )
    assert torch.equal(sink_mask(seq, window, n_sinks), wanted)


@given(st.integers(1, 9), st.integers(0, 10), st.integers(0, 10))
def test_it_is_the_union_of_a_causal_window_and_causal_global_tokens(seq, window, n_sinks):
    union = sliding_window_mask(seq, window, causal=True)
    union |= global_mask(seq, range(min(n_sinks, seq)), causal=True)
    assert torch.equal(sink_mask(seq, window, n_sinks), union)


def test_a_late_query_sees_window_and_sinks_and_itself():
    assert sink_mask(100, 8, 4)[50].sum() == 8 + 4 + 1


def test_the_mask_is_made_where_it_is_wanted():
    assert sink_mask(3, 1, 1, device="meta").is_meta


@given(
    st.integers(1, 14),
    st.integers(1, 20),
    st.integers(0, 16),
    st.integers(0, 14),
    st.sampled_from(list(paddings(1))),
)
def test_sparse_attention_computes_exactly_this(seq, block, window, n_sinks, padding):
    """With as many sinks as tokens too, where the sinks overlap the window, and without any."""
    n_sinks = min(n_sinks, seq)

    def attend(*inputs):
        options = {"window": window, "global_tokens": range(n_sinks), "causal": True}
        return sparse_attention(*inputs, **options, block=block)

    assert_equals_dense(attend, sink_mask(seq, window, n_sinks), qkv(seq), paddings(seq)[padding])


def by_the_formula(query, key, value, window, n_sinks):
    """Query by query: softmax over the keys written down as a list, in plain sums."""
    rows = []
    for i in range(query.shape[2]):
        seen = [j for j in range(i + 1) if j < n_sinks or j >= i - window]
        scores = [(query[:, :, i] * key[:, :, j]).sum(-1) / math.sqrt(3) for j in seen]
        total = sum(score.exp() for score in scores)
        rows.append(
            sum(
                score.exp()[..., None] * value[:, :, j]
                for score, j in zip(scores, seen, strict=True)
            )
            / total[..., None]
        )
    return torch.stack(rows, dim=2)


@pytest.mark.parametrize(
    ("seq", "window", "n_sinks"), [(1, 0, 1), (13, 3, 2), (13, 0, 4), (9, 4, 0)]
)
def test_sparse_attention_equals_a_loop_over_queries(seq, window, n_sinks):
    inputs = qkv(seq)
    output = sparse_attention(
        *inputs, window=window, global_tokens=range(n_sinks), causal=True, block=4
    )
    expected = by_the_formula(*inputs, window, n_sinks)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)


def with_sinks(*inputs):
    return sparse_attention(*inputs, window=16, global_tokens=range(4), causal=True, block=32)


def test_no_tensor_of_query_times_key_numbers_is_made():
    """The largest is that of the listed keys: n times window, block and sinks."""
    assert 1000 * 2 <= largest_tensor(with_sinks, 1000) <= 1024 * (16 + 32 + 4)
    assert largest_piece(with_sinks, 1000, numbers=2000) <= 2 * 1024 * 4
