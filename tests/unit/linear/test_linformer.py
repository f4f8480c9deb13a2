import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import MultiHeadAttention, merge_heads, split_heads
from attention.linear.linformer import Linformer, linformer_attention
from tests.unit.cases import assert_close, assert_gradients_close, randomise
from tests.unit.refusals import refusals


@st.composite
def inputs(draw):
    """Draw query, key, value, E, F, and a padding mask or None."""
    batch, heads, n_queries, n_keys, d_key, d_value, k, more = (
        draw(st.integers(least, most))
        for least, most in ((1, 2), (1, 3), (1, 7), (1, 7), (1, 4), (1, 4), (1, 5), (0, 3))
    )
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    tensors = [
        torch.randn(shape, dtype=torch.float64, generator=rng).requires_grad_()
        for shape in (
            (batch, heads, n_queries, d_key),
            (batch, heads, n_keys, d_key),
            (batch, heads, n_keys, d_value),
            (k, n_keys + more),
            (k, n_keys + more),
        )
    ]
    mask = torch.rand(batch, 1, 1, n_keys, generator=rng) < 0.6
    return tensors, draw(st.sampled_from([None, mask]))


def one_by_one(query, key, value, E, F, mask):
    """Equation 7 with a loop for every query and every mixture; masked keys come in 0 times."""
    n_keys, outputs = key.shape[2], torch.zeros(*query.shape[:3], value.shape[3]).double()
    for b, h, i in itertools.product(*map(range, query.shape[:3])):
        allowed = torch.ones(n_keys).double() if mask is None else mask[b, 0, 0].double()
        total, weighted = 0.0, 0.0
        for m in range(E.shape[0]):
            mixed_key = sum(E[m, j] * allowed[j] * key[b, h, j] for j in range(n_keys))
            mixed_value = sum(F[m, j] * allowed[j] * value[b, h, j] for j in range(n_keys))
            weight = (query[b, h, i] @ mixed_key / math.sqrt(key.shape[3])).exp()
            total, weighted = total + weight, weighted + weight * mixed_value
        outputs[b, h, i] = weighted / total
    return outputs


@settings(max_examples=25)
@given(inputs())
def test_equals_equation_7(case):
    tensors, mask = case
    before = [x.detach().clone() for x in tensors]
    output = linformer_attention(*tensors, mask)
    expected = one_by_one(*tensors, mask)
    assert_close(output, expected)
    assert_gradients_close(output, expected, tensors)
    assert all(map(torch.equal, tensors, before))


@pytest.mark.parametrize("length", [7, 12])
def test_the_module_projects_around_the_function(length):
    """E and F are one for all heads, and learn with the rest; shorter inputs use fewer columns."""
    module = MultiHeadAttention(8, 2, attend=Linformer(max_length=12, proj_len=5)).double()
    randomise(module, torch.Generator().manual_seed(1))
    x = torch.randn(2, length, 8).double().requires_grad_()
    attend, inputs = module.attend, [x, *module.parameters()]
    for mask in (None, (torch.arange(length) < 4)[None, None, None].expand(2, -1, -1, -1)):
        q, k, v = (split_heads(w(x), 2) for w in (module.w_q, module.w_k, module.w_v))
        attended = linformer_attention(q, k, v, attend.E[:, :length], attend.F[:, :length], mask)
        expected = module.w_o(merge_heads(attended))
        output, weights = module(x, mask=mask)
        assert weights is None
        assert_close(output, expected)
        assert_gradients_close(output, expected, inputs)
    assert [tuple(w.shape) for w in attend.parameters()] == [(5, 12)] * 2


def test_a_mixture_of_unrelated_rows_varies_as_much_as_one_row():
    """At the start. The variance of 400 · 64 numbers is off by 1 %; four times that is allowed."""
    torch.manual_seed(0)
    module = Linformer(max_length=512, proj_len=400)
    mixtures = module.E @ torch.randn(512, 64)
    assert mixtures.var().item() == pytest.approx(1, abs=0.04)


X = torch.zeros(1, 2, 5, 4)
E = torch.zeros(3, 6)
REFUSED = {
    "E of one axis": (
        lambda: linformer_attention(X, X, X, E[0], E[0]),
        "E must have shape (proj_len, max_length), got 1 dimensions: (6,)",
    ),
    "matrices of two shapes": (
        lambda: linformer_attention(X, X, X, E, E[:2]),
        "E and F must have the same shape (proj_len, max_length), got (3, 6) and (2, 6)",
    ),
    "too long": (
        lambda: linformer_attention(X, torch.zeros(1, 2, 7, 4), torch.zeros(1, 2, 7, 4), E, E),
        "7 keys are more than E and F of shape (3, 6) have columns; cut the keys to"
        " 6, or build both matrices for a greater length",
    ),
    "causal for the module": (
        lambda: MultiHeadAttention(8, 2, attend=Linformer(max_length=6, proj_len=3))(
            torch.zeros(1, 5, 8), causal=True
        ),
        "causal=True asks for a hidden future, and Linformer mixes all keys before any score is"
        " made; use it in an encoder or for cross-attention, or `linear_attention` here",
    ),
}


test_bad_input_is_refused = refusals(REFUSED, whole=True)
