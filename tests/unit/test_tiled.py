import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from attention import causal_mask, scaled_dot_product_attention
from attention.tiled import tiled_attention
from tests.unit.cases import assert_close, assert_gradients_close, gradients


@st.composite
def qkv(draw):
    """Draw query, key, value, a mask and a tile that need not divide either length."""
    batch, heads, d_key, d_value = (draw(st.integers(1, 3)) for _ in range(4))
    n_queries, n_keys = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    query, key, value = (
        torch.randn(batch, heads, *shape, dtype=torch.float64, generator=rng).requires_grad_()
        for shape in ((n_queries, d_key), (n_keys, d_key), (n_keys, d_value))
    )
    shape = [batch, heads, n_queries, n_keys][draw(st.sampled_from((0, 2))) :]
    shape = [1 if draw(st.booleans()) else size for size in shape]
    mask = draw(st.sampled_from([None, torch.rand(shape, generator=rng) < 0.6]))
    return query, key, value, mask, draw(st.booleans()), draw(st.integers(1, 10))


@given(qkv())
def test_equals_full_attention_in_values_and_gradients(qkv):
    query, key, value, mask, causal, tile = qkv
    whole = mask
    if causal:
        past = causal_mask(query.shape[-2], key.shape[-2])
        whole = past if mask is None else past & mask
    output = tiled_attention(query, key, value, mask, causal=causal, tile=tile)
    expected, _ = scaled_dot_product_attention(query, key, value, whole)
    assert_close(output, expected)
    inputs = [query, key, value]
    assert_gradients_close(output, expected, inputs)


def test_the_running_maximum_keeps_large_scores_finite():
    """Scores of 0, 1000, 2000, …: each tile has a new maximum, and exp(1000) is infinite."""
    key = torch.arange(8.0)[None, None, :, None] * 1000
    value = torch.arange(8.0)[None, None, :, None]
    for order in (torch.arange(8), torch.arange(8).flip(0)):
        inputs = [x.requires_grad_() for x in (torch.ones(1, 1, 1, 1), key[:, :, order])]
        output = tiled_attention(*inputs, value[:, :, order], tile=2)
        assert output.item() == 7.0
        assert all(g.isfinite().all() for g in gradients([output], inputs))


@pytest.mark.parametrize(
    ("dtype", "tile"), [(torch.float16, 8), (torch.bfloat16, 8), (torch.float32, 512)]
)
def test_every_type_is_as_exact_as_it_can_be(dtype, tile):
    """500 tiles and almost equal weights: a sum kept in bfloat16 would stop growing at 256.

    float32 has no wider type to be summed in, and gets 8 tiles: each sum rounds once per tile.
    """
    rng = torch.Generator().manual_seed(0)
    query = torch.randn(1, 2, 3, 8, generator=rng).to(dtype).requires_grad_()
    key, value = (torch.randn(1, 2, 4000, 8, generator=rng).to(dtype) for _ in range(2))
    inputs = [query, key.mul(1e-2).requires_grad_(), (value + 1).requires_grad_()]
    output = tiled_attention(*inputs, tile=tile)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    expected, _ = scaled_dot_product_attention(*wide)
    assert output.dtype == dtype
    assert_close(output, expected)
    pairs = zip(gradients([output], inputs), gradients([expected], wide), strict=True)
    for actual, gradient in pairs:
        assert actual.dtype == dtype
        largest = gradient.abs().max().item()
        assert_close(actual / largest, gradient / largest, ulps=16)


def test_tiles_that_the_causal_mask_hides_are_not_computed():
    """Of 8 × 8 tiles 8 · 9 / 2 are left, in the forward pass and in the backward pass."""
    query, key, value = (torch.randn(1, 1, 64, 4, requires_grad=True) for _ in range(3))
    operations = {}
    for causal in (False, True):
        with FlopCounterMode(display=False) as counter:
            output = tiled_attention(query, key, value, causal=causal, tile=8)
        forward = counter.get_total_flops()
        with FlopCounterMode(display=False) as counter:
            output.sum().backward()
        operations[causal] = forward, counter.get_total_flops()
    # Two products of 2 · 64 · 64 · 4 forward, five backward (the scores once more).
    assert operations[False] == (2 * 2 * 64 * 64 * 4, 5 * 2 * 64 * 64 * 4)
    assert operations[True] == tuple(flops * 36 // 64 for flops in operations[False])


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts differently elsewhere")
def test_peak_memory_is_linear_in_n():
    """4096 queries and keys with gradients: the matrix of scores alone would take 64 MiB."""
    code = """
import resource, torch
from attention.tiled import tiled_attention
torch.set_num_threads(1)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def grown(n):
    before = peak()
    query, key, value = (torch.randn(1, 1, n, 16, requires_grad=True) for _ in range(3))
    tiled_attention(query, key, value, causal=True).sum().backward()
    return peak() - before
grown(256)
print(grown(4096))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    inputs_and_outputs = 8 * 4096 * 16 * 4 / 2**20  # query, key, value, output, their gradients
    assert float(run.stdout) < 3 * inputs_and_outputs + 8


def test_nothing_passed_in_is_modified():
    query, key, value = (torch.randn(1, 2, 5, 3, requires_grad=True) for _ in range(3))
    mask, pull = causal_mask(5), torch.randn(1, 2, 5, 3)
    inputs = (query, key, value, mask, pull)
    before = [x.detach().clone() for x in inputs]
    tiled_attention(query, key, value, mask, causal=True, tile=2).backward(pull)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))
