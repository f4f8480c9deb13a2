import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.fixed import fixed_attention
from attention.sparse.global_tokens import global_mask
from attention.sparse.random_keys import draw_random_keys, random_mask
from attention.sparse.strided import strided_attention
from attention.sparse.union import sparse_attention
from attention.sparse.window import sliding_window_mask
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import (
    LargestTensor,
    assert_equals_dense,
    largest_piece,
    largest_tensor,
    paddings,
    qkv,
    zeros,
)


@given(
    st.integers(1, 14),
    st.integers(1, 20),
    st.none() | st.integers(0, 16),
    st.sets(st.integers(0, 13), max_size=3),
    st.none() | st.integers(1, 6),
    st.booleans(),
    st.sampled_from(list(paddings(1))),
)
def test_every_union_equals_dense_attention_under_its_mask(
    seq, block, window, global_tokens, n_random, causal, padding
):
    """Windows wider than n, blocks that do not divide n, keys that several parts hold."""
    parts, masks = {"causal": causal, "block": block}, []
    if window is not None:
        parts["window"] = window if causal else 2 * window
        masks.append(sliding_window_mask(seq, parts["window"], causal=causal))
    global_tokens = [position for position in global_tokens if position < seq]
    if global_tokens:
        parts["global_tokens"] = global_tokens[::-1] + global_tokens  # twice, out of order
        masks.append(global_mask(seq, global_tokens, causal=causal))
    if n_random:
        rng = torch.Generator().manual_seed(seq)
        parts["random_keys"] = draw_random_keys(seq, n_random, block=block, generator=rng)
        masks.append(random_mask(seq, parts["random_keys"], block=block, causal=causal))
    if masks:
        pattern = torch.stack(masks).any(0)

        def attend(*inputs):
            return sparse_attention(*inputs, **parts)

        assert_equals_dense(attend, pattern, qkv(seq), paddings(seq)[padding])


@pytest.mark.parametrize("causal", [False, True])
def test_at_the_default_block(causal):
    seq = 300
    parts = {
        "window": 40,
        "global_tokens": (0, 7, 150),
        "random_keys": draw_random_keys(seq, 9, block=128, causal=causal),
    }
    pattern = (
        sliding_window_mask(seq, 40, causal=causal)
        | global_mask(seq, (0, 7, 150), causal=causal)
        | random_mask(seq, parts["random_keys"], block=128, causal=causal)
    )
    assert_equals_dense(
        lambda *inputs: sparse_attention(*inputs, **parts, causal=causal),
        pattern,
        qkv(seq),
        paddings(seq)["per sentence"],
    )


PARTS = {
    "window": {"window": 16},
    "causal window": {"window": 16, "causal": True},
    "sinks": {"window": 16, "global_tokens": range(2), "causal": True},
    "global": {"global_tokens": (0, 500)},
    "random": {"random_keys": draw_random_keys(1000, 8, block=32)},
    "union": {
        "window": 16,
        "global_tokens": (0, 500),
        "random_keys": draw_random_keys(1000, 8, block=32),
    },
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=list(PARTS))
def test_no_tensor_of_query_times_key_numbers_is_made(parts):
    """The largest is that of the listed keys: n times window, block, global and random keys.

    Without gradients gathered keys and masks fit a piece, and queries and output, (2, 1024, 2), are
    the largest.
    """

    def attend(*inputs):
        return sparse_attention(*inputs, **parts, block=32)

    assert 1000 * 2 <= largest_tensor(attend, 1000) <= 1024 * (16 + 32 + 2 + 8)
    assert largest_piece(attend, 1000, numbers=2000) <= 2 * 1024 * 2


ATTEND = {
    "union": lambda *x: sparse_attention(*x, **PARTS["union"], block=32),
    "strided": lambda *x: strided_attention(*x, stride=32),
    "fixed": lambda *x: fixed_attention(*x, stride=32),
}


@pytest.mark.parametrize("name", ATTEND)
def test_all_that_is_held_for_the_way_back_is_less_than_half_a_matrix(name):
    """1,024 queries and keys, forward and back: one head's matrix alone takes 4 MiB."""
    x = torch.randn(1, 1, 1024, 2, requires_grad=True)
    with LargestTensor() as watch:
        ATTEND[name](x, x, x, (torch.arange(1024) < 1000)[None, None, None]).sum().backward()
    assert watch.peak < 2 * 1024**2


test_bad_input = refusals(
    [
        (
            lambda: sparse_attention(**zeros()),
            "no query attends to anything: give window, global_tokens or random_keys",
        ),
        (
            lambda: sparse_attention(**zeros(global_tokens=[6])),
            "global_tokens has position 6, and 6 tokens end at 5",
        ),
        (
            lambda: sparse_attention(**zeros(random_keys=torch.zeros(2, 1).long())),
            "random_keys has 2 rows, and 6 queries in blocks of 6 need 1",
        ),
    ]
)
