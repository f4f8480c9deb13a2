import math

import pytest
import torch
from torch.nn import functional as F

from attention import causal_mask
from attention.linear.random_features import fourier_features, random_feature_attention
from tests.unit.cases import assert_close, assert_gradients_close, gradients
from tests.unit.linear.test_feature_maps import quadratic_form
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import paddings, qkv

DRAWS = 20_000


def errors(n_features: int) -> torch.Tensor:
    """The estimate of exp(-|x - y|²/2) less its value, for `DRAWS` projections and four pairs."""
    rng = torch.Generator().manual_seed(n_features)
    x, y = F.normalize(torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0)), dim=-1)
    n_rows = DRAWS * n_features
    rows = torch.randn(n_rows, 8, generator=rng)
    products = fourier_features(x, rows) * fourier_features(y, rows) * n_rows
    estimates = products.unflatten(1, (2, DRAWS, n_features)).sum(1).mean(-1).T  # sines, cosines
    return estimates - (-(x - y).square().sum(-1) / 2).exp()


def test_the_features_estimate_the_gaussian_without_bias():
    """The mean over all draws lies within 4 standard errors of the exact value."""
    error = errors(16)
    standard_error = error.std(0) / math.sqrt(DRAWS)
    assert (error.mean(0).abs() < 4 * standard_error).all()
    assert (standard_error < 0.01).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", list(paddings(1)))
def test_it_equals_the_quadratic_form_of_its_features(padding, causal):
    """With so many features that no normaliser is held up."""
    inputs, padding = qkv(9), paddings(9)[padding]
    projection = torch.randn(2000, 3, generator=torch.Generator().manual_seed(1)).double()
    query, key = (
        fourier_features(x / x.norm(dim=-1, keepdim=True) * 0.5**0.5, projection)
        for x in inputs[:2]
    )
    mask = causal_mask(9) if causal else torch.ones(1, 9)
    expected = quadratic_form(query, key, inputs[2], mask if padding is None else mask * padding)
    output = random_feature_attention(*inputs, projection, padding, causal=causal, scale=0.5)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)


@pytest.mark.parametrize("causal", [False, True])
def test_a_normaliser_near_zero_is_held_up(causal):
    """One cosine can be -1. No weight is below exp(-2), so no output is above exp(2) · |value|."""
    query, key, value = (x.detach().requires_grad_() for x in qkv(40))
    projection = 3 * torch.ones(1, 3, dtype=torch.float64)
    with torch.no_grad():
        features = [fourier_features(F.normalize(x, dim=-1), projection) for x in (query, key)]
        weights = features[0] @ features[1].transpose(-2, -1)
        totals = (weights.tril() if causal else weights).sum(-1)
    assert (totals < 0).any()  # without the guard, some outputs would have the wrong sign
    output = random_feature_attention(query, key, value, projection, causal=causal)
    assert output.abs().max() <= math.exp(2) * value.abs().max()
    assert all(x.isfinite().all() for x in gradients([output], [query, key, value]))


X = torch.zeros(1, 1, 3, 4)
test_bad_input_is_refused = refusals(
    [
        (
            lambda: random_feature_attention(X, X, X, torch.zeros(8, 4), scale=0.0),
            "scale must be positive, got 0",
        )
    ]
)
