"""Another mechanism in the place of scaled dot-product attention: one line of a reader's code."""

import re
from functools import partial

import pytest
import torch

from attention import (
    EncoderLayer,
    MultiHeadAttention,
    causal_mask,
    linear_attention,
    merge_heads,
    padding_mask,
    performer_attention,
    sliding_window_mask,
    sparse_attention,
    split_heads,
    strided_attention,
    strided_mask,
    tiled_attention,
)
from attention.linear.performer import orthogonal_projection
from tests.unit.cases import assert_close, gradients

EXACT = {  # and the mask under which dense attention does the same, of 11 tokens
    "tiled": (partial(tiled_attention, tile=4), None),
    "tiled, causal": (partial(tiled_attention, causal=True, tile=4), causal_mask(11)),
    "window": (partial(sparse_attention, window=4, block=4), sliding_window_mask(11, 4)),
    "strided": (partial(strided_attention, stride=3), strided_mask(11, 3)),
}
ESTIMATES = {
    "linear": partial(linear_attention, causal=True),
    "performer": lambda q, k, v, mask: performer_attention(
        q, k, v, orthogonal_projection(16, 4, generator=torch.Generator().manual_seed(0)), mask
    ),
}


@pytest.fixture
def module():
    torch.manual_seed(0)
    return MultiHeadAttention(8, 2).double()


@pytest.fixture
def x():
    rng = torch.Generator().manual_seed(1)
    return torch.randn(3, 11, 8, generator=rng, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("padded", [False, True])
def test_an_exact_one_changes_nothing_but_the_cost(name, padded, module, x):
    mechanism, pattern = EXACT[name]
    unpadded = padding_mask(torch.arange(1, 34).view(3, 11) % 9, 0) if padded else None
    mask = pattern if unpadded is None else unpadded if pattern is None else unpadded & pattern
    inputs = [x, *module.parameters()]
    expected, _ = module(x, mask=mask)
    wanted = gradients([expected], inputs)
    module.mechanism = mechanism
    output, weights = module(x, mask=unpadded)
    assert weights is None
    assert_close(output, expected)
    for actual, gradient in zip(gradients([output], inputs), wanted, strict=True):
        torch.testing.assert_close(actual, gradient, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATES)
def test_it_gets_the_heads_and_its_result_is_merged(name, module, x):
    q, k, v = (split_heads(w(x), 2) for w in (module.w_q, module.w_k, module.w_v))
    by_hand = module.w_o(merge_heads(ESTIMATES[name](q, k, v, None)))
    module.mechanism = ESTIMATES[name]
    assert_close(module(x)[0], by_hand)
    assert_close(module(x, need_weights=False)[0], by_hand)


def test_gates_and_transforms_stay(module, x):
    module.qk_transform = lambda q, k: (2 * q, k)
    module.head_gate = torch.tensor([1.0, 0.0])
    expected, _ = module(x)
    module.mechanism = tiled_attention
    assert_close(module(x)[0], expected)


def test_in_a_layer_of_a_transformer():
    torch.manual_seed(0)
    layer, x = EncoderLayer(8, 2, 16), torch.randn(2, 7, 8)
    expected, _ = layer(x)
    layer.self_attention.mechanism = tiled_attention
    output, weights = layer(x)
    torch.testing.assert_close(output, expected)
    assert weights is None


REFUSED = {
    "causal": (
        lambda module: module,
        {"causal": True},
        "causal=True does not reach the mechanism, which says itself what it hides; call without "
        "it, and assign for example partial(linear_attention, causal=True)",
    ),
    "a bias": (
        lambda module: setattr(module, "score_bias", lambda n, m: torch.zeros(2, n, m)),
        {},
        "score_bias is for the scores or weights of scaled dot-product attention, and a mechanism "
        "has taken its place; leave one of the two out",
    ),
    "dropout": (
        lambda module: setattr(module, "dropout", 0.1),
        {},
        "dropout=0.1 is for the scores or weights",
    ),
    "another shape": (
        lambda module: setattr(module, "mechanism", lambda q, k, v, mask: v[:, :1]),
        {},
        "the result of mechanism must have shape (batch, heads, query, d_key) = (3, 2, 11, 4), got "
        "(3, 1, 11, 4)",
    ),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", REFUSED)
def test_what_it_would_not_hear_of_is_refused(name, module, x):
    change, options, message = REFUSED[name]
    module.mechanism = linear_attention
    change(module)
    with pytest.raises(ValueError, match=re.escape(message)):
        module(x, **options)


def test_dropout_of_a_layer_that_does_not_train_is_no_matter(module, x):
    module.dropout, module.mechanism = 0.1, tiled_attention
    assert module.eval()(x)[0].isfinite().all()
