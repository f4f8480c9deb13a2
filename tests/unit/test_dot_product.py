import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from attention import causal_mask, scaled_dot_product_attention
from attention.fused import fused_attention
from tests.unit.cases import ULPS_OF_GRADIENTS, assert_close, assert_gradients_close, gradients

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def test_by_hand():
    """d_key = 4, so that scores are halved: 0 and ln 3, weights 1/4 and 3/4."""
    query = torch.tensor([[2.0, 0, 0, 0], [0, 0, 0, 0]])
    key = torch.tensor([[0.0, 0, 5, 0], [math.log(3), 1, 0, 0]])
    value = torch.tensor([[8.0, 0, 1], [4, 4, 1]])
    output, weights = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75], [0.5, 0.5]]))
    torch.testing.assert_close(output, torch.tensor([[5.0, 3, 1], [6, 2, 1]]))


@st.composite
def qkv(draw):
    """Draw query, key, value and mask with any number of leading axes, in any floating type."""
    leading = draw(st.lists(st.integers(1, 3), max_size=3))
    n_queries, n_keys, d_key, d_value = (draw(st.integers(1, 6)) for _ in range(4))
    dtype = draw(st.sampled_from(DTYPES))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    query, key, value = (
        torch.randn(*leading, length, width, generator=rng).to(dtype).requires_grad_()
        for length, width in ((n_queries, d_key), (n_keys, d_key), (n_keys, d_value))
    )
    shape = [*leading, n_queries, n_keys]
    if draw(st.booleans()):  # two axes only
        shape = shape[-2:]
    shape = [1 if draw(st.booleans()) else size for size in shape]
    mask = torch.rand(shape, generator=rng) < 0.6
    return query, key, value, draw(st.sampled_from([None, mask]))


@given(qkv(), st.sampled_from([None, 0.3, 1.0]))
def test_equals_torch(qkv, scale):
    query, key, value, mask = qkv
    output, weights = scaled_dot_product_attention(query, key, value, mask, scale=scale)
    wide = [x.detach().double().requires_grad_() for x in (query, key, value)]
    expected = F.scaled_dot_product_attention(*wide, attn_mask=mask, scale=scale)
    assert output.dtype == query.dtype
    assert_close(output, expected)
    sees = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)
    assert (weights >= 0).all() and not weights[~sees].any()
    assert_close(weights.sum(-1), sees.any(-1).to(weights.dtype))
    with torch.inference_mode():
        again = scaled_dot_product_attention(query, key, value, mask, scale=scale)
    assert torch.equal(again[0], output) and torch.equal(again[1], weights)
    ours, theirs = gradients([output], [query, key, value]), gradients([expected], wide)
    for actual, wanted in zip(ours, theirs, strict=True):
        assert_close(actual, wanted, ulps=ULPS_OF_GRADIENTS)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attend", [scaled_dot_product_attention, fused_attention])
def test_a_fully_masked_row_gives_zeros_and_finite_gradients(attend, dtype):
    """Also where keys fill more than one block of the fused kernel (512 keys on a CPU)."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 2, n, 4).to(dtype).requires_grad_() for n in (5, 600, 600))
    mask = torch.rand(5, 600) < 0.5
    mask[2] = False
    mask[3] = torch.arange(600) == 599  # sees one key only, in the last block
    with torch.autograd.detect_anomaly(check_nan=True):  # no NaN inside the way back either
        result = attend(query, key, value, mask)
        output = result[0] if isinstance(result, tuple) else result
        found = gradients([output], [query, key, value])
    assert not output[:, :, 2].any()
    assert output[:, :, [0, 1, 3, 4]].all()
    assert torch.equal(output[:, :, 3], value[:, :, 599])
    assert not found[0][:, :, 2].any()
    assert all(gradient.isfinite().all() for gradient in found)


def test_large_scores_do_not_overflow():
    """In float16 the plain dot product, 40 · 40 · 64 = 102400, is above the largest, 65504."""
    x = torch.full((1, 2, 64), 40.0, dtype=torch.float16)
    output, weights = scaled_dot_product_attention(x, x, x)
    assert weights.tolist() == [[[0.5, 0.5], [0.5, 0.5]]]
    assert (output == 40).all()


def test_dropout_drops_weights_and_returns_those_used():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 50, 4).unbind(0)
    _, whole = scaled_dot_product_attention(query, key, value)
    output, weights = scaled_dot_product_attention(query, key, value, dropout=0.25)
    kept = weights != 0
    assert 0.7 < kept.float().mean() < 0.8
    torch.testing.assert_close(weights[kept], whole[kept] / 0.75)
    torch.testing.assert_close(output, weights @ value)
    nothing, _ = scaled_dot_product_attention(query, key, value, dropout=1.0)
    assert not nothing.any()


def test_a_forbidden_key_counts_for_nothing_beside_the_lowest_scores():
    """Scores of -2.4e8: a key that is hidden by a mere -10,000 would take all the weight."""
    query, key = torch.full((1, 1, 1, 1), 2.0e4), torch.full((1, 1, 2, 1), -1.2e4)
    value = torch.tensor([[[[1.0], [5.0]]]])
    mask = torch.tensor([[True, False]])
    assert scaled_dot_product_attention(query, key, value, mask)[1].flatten().tolist() == [1, 0]
    assert fused_attention(query, key, value, mask).item() == 1.0


@pytest.mark.parametrize("options", [{}, {"mask": causal_mask(50)}, {"causal": True}])
def test_the_fused_path_drops_weights(options):
    """Each output is a mean of ones over the weights that are left, doubled: seldom 1."""
    x, ones = torch.zeros(1, 1, 50, 4), torch.ones(1, 1, 50, 1)
    torch.manual_seed(0)
    output = fused_attention(x, x, ones, dropout=0.5, **options)
    assert len(output.unique()) > 5
    assert_close(fused_attention(x, x, ones, **options), ones)


@pytest.mark.parametrize(("n_queries", "n_keys"), [(5, 5), (5, 8), (5, 2), (1, 4)])
@pytest.mark.parametrize("masked", [False, True])
def test_the_causal_flag_is_the_mask(masked, n_queries, n_keys):
    """In values and gradients, beside another mask too; the last query sees the last key."""
    rng = torch.Generator().manual_seed(n_keys)
    inputs = [
        torch.randn(2, 3, n, 4, dtype=torch.float64, generator=rng).requires_grad_()
        for n in (n_queries, n_keys, n_keys)
    ]
    mask = torch.rand(2, 1, 1, n_keys, generator=rng) > 0.3 if masked else None
    past = causal_mask(n_queries, n_keys)
    expected, _ = scaled_dot_product_attention(*inputs, past if mask is None else past & mask)
    output = fused_attention(*inputs, mask, causal=True)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)
