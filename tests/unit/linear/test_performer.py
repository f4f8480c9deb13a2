import math

import pytest
import torch
from torch.nn import functional as F

from attention import (
    MultiHeadAttention,
    causal_mask,
    fused_attention,
    padding_mask,
)
from attention.heads import merge_heads, split_heads
from attention.linear.performer import (
    Performer,
    orthogonal_projection,
    performer_attention,
    positive_features,
)
from tests.unit.cases import assert_close, assert_gradients_close
from tests.unit.linear.test_feature_maps import quadratic_form
from tests.unit.sparse.cases import LargestTensor, paddings, qkv

D_KEY, DRAWS = 8, 20_000


def errors(n_features: int, orthogonal: bool) -> torch.Tensor:
    """The estimate of exp(x·y) less its value, for `DRAWS` projections and four pairs.

    All draws at once: groups of D_KEY orthogonal rows are independent of one another. The vectors
    are short: for long ones the estimate's tail is so heavy that no number of draws says much.
    """
    rng = torch.Generator().manual_seed(n_features)
    x, y = 0.25 * torch.randn(2, 4, D_KEY, generator=torch.Generator().manual_seed(0)).double()
    n_rows = DRAWS * n_features
    if orthogonal:
        rows = orthogonal_projection(n_rows, D_KEY, generator=rng)
    else:
        rows = torch.randn(n_rows, D_KEY, generator=rng)
    products = positive_features(x, rows) * positive_features(y, rows) * n_rows
    estimates = products.unflatten(1, (DRAWS, n_features)).mean(-1).T
    return estimates - (x * y).sum(-1).exp()


def test_the_rows_are_orthogonal_and_normal():
    """In groups of d_key, the last of which may be smaller."""
    rows = orthogonal_projection(20_002, 4, generator=torch.Generator().manual_seed(0))
    groups, last = rows[:-2].unflatten(0, (-1, 4)), rows[-2:]
    for group in (groups, last):
        products = group @ group.mT
        diagonal = products.diagonal(dim1=-2, dim2=-1).diag_embed()
        torch.testing.assert_close(products, diagonal, atol=1e-4, rtol=0)
    assert (groups[:-1, 0] * groups[1:, 0]).sum(-1).abs().mean() > 0.1  # each its own rotation
    # Each entry is standard normal: mean 0, variance 1, fourth moment 3, within 5 deviations.
    for power, moment, deviation in ((1, 0, 1), (2, 1, 2**0.5), (4, 3, 96**0.5)):
        tolerance = 5 * deviation / math.sqrt(len(groups))
        assert ((groups**power).mean(0) - moment).abs().max() < tolerance


@pytest.mark.parametrize("orthogonal", [False, True])
def test_the_features_estimate_the_kernel_without_bias(orthogonal):
    """The mean over all draws lies within 4 standard errors of the exact exp(x·y)."""
    error = errors(16, orthogonal)
    standard_error = error.std(0) / math.sqrt(DRAWS)
    assert (error.mean(0).abs() < 4 * standard_error).all()
    assert (standard_error < 0.01).all()  # else 4 of them would hide a bias


def test_orthogonal_rows_vary_less_than_independent_ones():
    """By more than 4 standard errors, summed over the pairs: the same draws, the same sizes."""
    independent, orthogonal = (errors(8, kind).square().sum(1) for kind in (False, True))
    difference = independent.mean() - orthogonal.mean()
    standard_error = ((independent.var() + orthogonal.var()) / DRAWS).sqrt()
    assert difference > 4 * standard_error


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", list(paddings(1)))
def test_it_equals_the_quadratic_form_of_its_features(padding, causal):
    """The plain features, without the factors that keep the module's from overflowing."""
    inputs, padding = qkv(9), paddings(9)[padding]
    projection = torch.randn(5, 3, generator=torch.Generator().manual_seed(1)).double()
    query, key = (positive_features(x / 3**0.25, projection) for x in inputs[:2])
    mask = causal_mask(9) if causal else torch.ones(1, 9)
    expected = quadratic_form(query, key, inputs[2], mask if padding is None else mask * padding)
    output = performer_attention(*inputs[:3], projection, padding, causal=causal)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)


def test_long_vectors_neither_overflow_nor_vanish():
    """|x|² / 2 is about 700, and exp(-700) is 0 in float32."""
    rng = torch.Generator().manual_seed(0)
    key = 150 * F.normalize(torch.randn(1, 1, 3, 64, generator=rng), dim=-1)
    value = torch.randn(1, 1, 3, 4, generator=rng)
    output = performer_attention(
        key, key, value, orthogonal_projection(64, 64, generator=rng), causal=True
    )
    assert output.isfinite().all()
    assert output.abs().max() <= value.abs().max() + 1e-5
    torch.testing.assert_close(output[:, :, 0], value[:, :, 0])  # its own key is all that it sees


def test_long_vectors_in_any_direction_keep_their_weights():
    """The features that are large for a query need not be those that are large for some key."""
    rng = torch.Generator().manual_seed(0)
    query, key = 150 * F.normalize(torch.randn(2, 1, 4, 16, 64, generator=rng), dim=-1)
    value = torch.randn(1, 4, 16, 3, generator=rng)
    rows = orthogonal_projection(64, 64, generator=rng)
    exact = performer_attention(*(x.double() for x in (query, key, value, rows)))
    # Exponents of about 700 are known to 1e-4 in float32, and so are the weights.
    torch.testing.assert_close(
        performer_attention(query, key, value, rows).double(), exact, atol=1e-3, rtol=0
    )


def test_padding_does_not_set_the_scale_of_the_features():
    """A key of length 0 has the feature 1 everywhere, beside which e^-200 is 0 in float32."""
    rng = torch.Generator().manual_seed(0)
    query, key = 60 * F.normalize(torch.randn(2, 1, 1, 5, 4, generator=rng), dim=-1)
    key[:, :, 3:] = 0.0
    value, rows = torch.randn(1, 1, 5, 3, generator=rng), torch.randn(8, 4, generator=rng)
    output = performer_attention(query, key, value, rows, torch.arange(5)[None] < 3)
    expected = performer_attention(query, key[:, :, :3], value[:, :, :3], rows)
    torch.testing.assert_close(output, expected)


def test_causal_a_long_key_before_short_ones_is_lost_where_the_docstring_says():
    rng = torch.Generator().manual_seed(0)
    x = F.normalize(torch.randn(1, 4, 300, 64, generator=rng), dim=-1) * 8
    projection = orthogonal_projection(256, 64, generator=rng)
    for length, lost in ((32, False), (64, True)):
        key = torch.cat([x[:, :, :1] * length / 8, x[:, :, 1:]], dim=2)
        output, exact = (
            performer_attention(*(y.to(kind) for y in (x, key, x)), projection, causal=True)
            for kind in (torch.float32, torch.float64)
        )
        torch.testing.assert_close(output[:, :, 1:].double(), exact[:, :, 1:], atol=1e-3, rtol=0)
        torch.testing.assert_close(exact[:, :, :1], x[:, :, :1].double(), atol=1e-3, rtol=0)
        assert (output[:, :, 0] == 0).all(-1).all() == lost


@pytest.mark.parametrize("causal", [False, True])
def test_features_are_held_for_one_chunk_at_a_time(causal):
    """1000 tokens and 128 features."""
    inputs = [torch.randn(1, 1, 1000, 8) for _ in range(3)]
    padding = (torch.arange(1000) < 900)[None]
    for mask in (None, padding):
        with LargestTensor() as watch, torch.no_grad():
            performer_attention(*inputs, torch.randn(128, 8), mask, causal=causal)
        assert watch.numel <= 128 * 128  # the features of one chunk; all of them are 128000


@pytest.mark.parametrize("length", [127, 128, 129, 300])
def test_chunks_share_the_largest_of_each_feature(length):
    """Keys of length 20 in one chunk and of length 1 in the others, or the other way round."""
    rng = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 1, 2, length, 4, dtype=torch.float64, generator=rng)
    key[:, 0, length // 2 :] *= 10
    key[:, 1, : length // 2] *= 10
    projection = torch.randn(8, 4, dtype=torch.float64, generator=rng)
    features = [positive_features(x / 4**0.25, projection) for x in (query, key)]
    for causal in (False, True):
        mask = causal_mask(length) if causal else torch.ones(1, length)
        expected = quadratic_form(*features, value, mask)
        assert_close(performer_attention(query, key, value, projection, causal=causal), expected)


@pytest.mark.parametrize("causal", [False, True])
def test_the_module_projects_around_the_function(causal):
    module = MultiHeadAttention(8, 2, attend=Performer(4, n_features=6)).double()
    x = torch.randn(2, 5, 8).double()
    mask = padding_mask(torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]]), 0)
    q, k, v = (split_heads(w(x), 2) for w in (module.w_q, module.w_k, module.w_v))
    for padding in (None, mask):
        attended = performer_attention(q, k, v, module.attend.projection, padding, causal=causal)
        output, _ = module(x, mask=padding, causal=causal)
        assert torch.equal(output, module.w_o(merge_heads(attended)))
    output.sum().backward()
    assert all(w.grad is not None for w in module.parameters())


def test_a_redrawn_projection_is_another_one_and_is_kept():
    module = Performer(4, n_features=6, generator=torch.Generator().manual_seed(0)).double()
    for seed in (0, 1):
        drawn = orthogonal_projection(6, 4, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(module.state_dict()["projection"], drawn.double())
        module.redraw(generator=torch.Generator().manual_seed(1))
    assert not list(module.parameters())
    module.redraw()  # torch's global generator
    assert not torch.isclose(module.projection, drawn.double()).any()


@pytest.mark.parametrize(("length", "least", "most"), [(1.0, 2, 8), (0.5, 0.3, 1), (0.25, 0, 0.1)])
def test_the_reach_of_the_estimate(length, least, most):
    """256 features and normal vectors of 64 columns: the figures that the docstring gives."""
    rng = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 1, 4, 1024, 64, generator=rng)
    query, key = length * query, length * key
    exact = fused_attention(query, key, value)
    projection = orthogonal_projection(256, 64, generator=rng)
    error = performer_attention(query, key, value, projection) - exact
    assert least < error.square().mean().sqrt() / exact.square().mean().sqrt() < most
