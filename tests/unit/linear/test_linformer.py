import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from attention import MultiHeadAttention, causal_mask, padding_mask, scaled_dot_product_attention
from attention.linear.linformer import Linformer, linformer_attention
from tests.unit.cases import assert_close, assert_gradients_close, gradients, randomise
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


def with_identities(length):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 3, length, 4).double().requires_grad_().unbind(0)
    identity = torch.eye(length).double()
    return query, key, value, identity


@pytest.mark.parametrize("length", [1, 5, 33])
def test_with_as_many_mixtures_as_keys_and_identities_it_is_full_attention(length):
    query, key, value, identity = with_identities(length)
    output = linformer_attention(query, key, value, identity, identity)
    expected, _ = scaled_dot_product_attention(query, key, value)
    inputs = [query, key, value]
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)


def test_padding_changes_nothing_and_yet_is_not_what_masking_scores_gives():
    query, key, value, identity = with_identities(6)
    mask = torch.tensor([1, 1, 1, 1, 0, 0])[None, None, None] == 1
    output = linformer_attention(query, key, value, identity, identity, mask)
    inputs = [query, key, value]
    assert not any(gradient[:, :, 4:].any() for gradient in gradients([output], inputs)[1:])

    # A masked key keeps its mixture: score 0, value 0, and the weight that goes with it.
    scores = query @ key.mT / 2 * mask
    assert_close(output, torch.softmax(scores, -1) @ (value * mask.mT))
    masked, _ = scaled_dot_product_attention(query, key, value, mask)
    share = torch.softmax(scores, -1)[..., :4].sum(-1, keepdim=True)
    assert (share < 0.95).all()
    assert_close(output, share * masked)


def test_nothing_to_attend_to_gives_zeros_and_finite_gradients():
    query, key, value, identity = with_identities(5)
    mask = torch.tensor([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0]])[:, None, None] == 1
    output = linformer_attention(query, key, value, identity[:2], identity[:2], mask)
    assert output[0].all()
    assert not output[1].any()
    assert all(gradient.isfinite().all() for gradient in gradients([output], [query, key, value]))


def a_module(**options):
    attend = Linformer(max_length=12, proj_len=12)
    module = MultiHeadAttention(8, 2, attend=attend, **options).double()
    randomise(module, torch.Generator().manual_seed(1))
    return module


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("length", [1, 7, 12])
def test_the_module_around_identities_is_multi_head_attention(bias, length):
    """Also for inputs shorter than max_length, where mixtures 8 to 12 hold nothing: score 0."""
    ours, theirs = a_module(bias=bias), MultiHeadAttention(8, 2, bias=bias).double()
    theirs.load_state_dict(
        {name: w for name, w in ours.state_dict().items() if name.startswith("w_")}
    )
    with torch.no_grad():
        ours.attend.E.copy_(torch.eye(12))
        ours.attend.F.copy_(torch.eye(12))
    x = torch.randn(2, length, 8).double().requires_grad_()
    padded = F.pad(x, (0, 0, 0, 12 - length))
    mask = (torch.arange(12) < length)[None, None, None].expand(2, -1, -1, -1)
    output, _ = ours(x)
    assert_close(ours(padded, mask=mask)[0][:, :length], output)
    if length == 12:
        expected, _ = theirs(x)
        assert_close(output, expected)
        wanted = gradients([expected], [x, *theirs.parameters()])
        parameters = [w for name, w in ours.named_parameters() if name.startswith("w_")]
        for ours_, theirs_ in zip(gradients([output], [x, *parameters]), wanted, strict=True):
            assert_close(ours_, theirs_)


def test_what_padding_holds_does_not_matter():
    module, mask = a_module(), padding_mask(torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]]), 0)
    x = torch.randn(2, 5, 8).double()
    other = torch.where(mask[:, 0, 0, :, None], x, 100.0)
    tokens = mask[:, 0, 0]
    assert_close(module(x, mask=mask)[0][tokens], module(other, mask=mask)[0][tokens])
    assert not torch.allclose(module(x)[0][tokens], module(other)[0][tokens])


def test_every_parameter_learns_and_is_counted():
    module = MultiHeadAttention(8, 2, attend=Linformer(max_length=12, proj_len=3))
    module(torch.randn(2, 12, 8))[0].sum().backward()
    assert all(w.grad is not None for w in module.parameters())
    assert sum(w.numel() for w in module.parameters()) == 4 * (64 + 8) + 2 * 3 * 12


def test_a_mixture_of_unrelated_rows_varies_as_much_as_one_row():
    """At the start. The variance of 400 · 64 numbers is off by 1 %; four times that is allowed."""
    torch.manual_seed(0)
    module = Linformer(max_length=512, proj_len=400)
    mixtures = module.E @ torch.randn(512, 64)
    assert mixtures.var().item() == pytest.approx(1, abs=0.04)


X = torch.zeros(1, 2, 5, 4)
E = torch.zeros(3, 6)
CAUSAL = (
    "Linformer can leave out keys for all queries alike, not for single queries: mask must have"
    " size 1 on its query axis, as padding_mask makes it, got (5, 5)"
)
REFUSED = {
    "E of one axis": (
        lambda: linformer_attention(X, X, X, E[0], E[0]),
        "E must have shape (proj_len, max_length), got 1 dimensions: (6,)",
    ),
    "F of one axis": (
        lambda: linformer_attention(X, X, X, E, E[0]),
        "F must have shape (proj_len, max_length), got 1 dimensions: (6,)",
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
    "a causal mask": (lambda: linformer_attention(X, X, X, E, E, causal_mask(5)), CAUSAL),
    "too long for the module": (
        lambda: a_module()(torch.zeros(1, 13, 8).double()),
        "13 keys are more than E and F of shape (12, 12) have columns; cut the keys to"
        " 12, or build both matrices for a greater length",
    ),
    "a causal mask for the module": (
        lambda: a_module()(torch.zeros(1, 5, 8).double(), mask=causal_mask(5)),
        CAUSAL,
    ),
    "causal for the module": (
        lambda: a_module()(torch.zeros(1, 5, 8).double(), causal=True),
        "causal=True asks for a hidden future, and Linformer mixes all keys before any score is"
        " made; use it in an encoder or for cross-attention, or `linear_attention` here",
    ),
}


test_bad_input_is_refused = refusals(REFUSED, whole=True)
