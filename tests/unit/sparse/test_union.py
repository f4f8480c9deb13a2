import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.global_tokens import global_mask
from attention.sparse.random_keys import draw_random_keys, random_mask
from attention.sparse.union import sparse_attention
from attention.sparse.window import sliding_window_mask
from tests.unit.cases import ULPS_OF_GRADIENTS, assert_close
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import (
    EACH_QUERYS_OWN,
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
@pytest.mark.parametrize("seq", [256, 300])
def test_at_the_default_block(seq, causal):
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_in_other_types(dtype):
    inputs = [x.detach().to(dtype) for x in qkv(50)]
    output = sparse_attention(*inputs, window=8, global_tokens=[3])
    expected = sparse_attention(*(x.double() for x in inputs), window=8, global_tokens=[3])
    assert output.dtype == dtype
    assert_close(output, expected, ulps=ULPS_OF_GRADIENTS)


def test_a_token_outside_the_pattern_changes_nothing():
    query, key, value = (x.detach() for x in qkv(40))
    before = sparse_attention(query, key, value, window=6, block=8)
    key[:, :, 20], value[:, :, 20] = 9.0, -9.0
    changed = (sparse_attention(query, key, value, window=6, block=8) != before).any(-1)[0, 0]
    assert changed.nonzero().flatten().tolist() == [17, 18, 19, 20, 21, 22, 23]


PARTS = {
    "window": {"window": 16},
    "causal window": {"window": 16, "causal": True},
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
    """The largest is that of the listed keys: n times window, block, global and random keys."""
    largest = largest_tensor(lambda *x: sparse_attention(*x, **parts, block=32), 1000)
    assert 1000 * 2 <= largest <= 1024 * (16 + 32 + 2 + 8)


@pytest.mark.parametrize("parts", PARTS.values(), ids=list(PARTS))
def test_without_gradients_no_tensor_outgrows_a_piece(parts):
    """Queries and output, (2, 1024, 2), are the largest; gathered keys and masks fit a piece."""
    largest = largest_piece(lambda *x: sparse_attention(*x, **parts, block=32), 1000, numbers=2000)
    assert largest <= 2 * 1024 * 2


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts differently elsewhere")
def test_memory_falls():
    """16 384 queries and keys, forward and back: one head's matrix alone would take 1 GiB."""
    code = """
import resource, torch
from attention.sparse.fixed import fixed_attention
from attention.sparse.union import sparse_attention
from attention.sparse.random_keys import draw_random_keys
from attention.sparse.strided import strided_attention
torch.set_num_threads(1)
def attend(x, padding=None):
    random_keys = draw_random_keys(x.shape[2], 16, block=128)
    parts = dict(window=128, global_tokens=[0, 9], random_keys=random_keys)
    for output in (sparse_attention(x, x, x, padding, **parts),
                   strided_attention(x, x, x, padding, stride=128),
                   fixed_attention(x, x, x, padding, stride=128)):
        output.sum().backward()
x = torch.randn(1, 1, 16384, 16, requires_grad=True)
attend(x[:, :, :256])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
attend(x, (torch.arange(16384) < 16000)[None, None, None])
print(peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 160


test_bad_input = refusals(
    [
        (
            lambda: sparse_attention(**zeros()),
            "no query attends to anything: give window, global_tokens or random_keys",
        ),
        (lambda: sparse_attention(**zeros(window=3)), "window=3 is odd"),
        (
            lambda: sparse_attention(**zeros(global_tokens=[6])),
            "global_tokens has position 6, and 6 tokens end at 5",
        ),
        (
            lambda: sparse_attention(**zeros(random_keys=torch.zeros(2, 1).long())),
            "random_keys has 2 rows, and 6 queries in blocks of 6 need 1",
        ),
        (
            lambda: sparse_attention(**zeros(window=2, query=torch.zeros(1, 1, 5, 2))),
            "sparse attention is self-attention",
        ),
        (
            lambda: sparse_attention(**zeros(window=2, mask=EACH_QUERYS_OWN)),
            "sparse attention can leave out keys",
        ),
    ]
)
