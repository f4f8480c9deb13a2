import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.recurrent.local import LocalAttention
from attention.recurrent.luong import LuongAttention
from tests.unit.cases import assert_close, gradients, randomise

SCORES = ("dot", "general", "concat")


def parameters_of(attention):
    """The paper's W_a and v_a."""
    if attention.score == "general":
        return attention.w.weight.T, None
    if attention.score == "concat":
        additive = attention.additive
        return torch.cat((additive.w_q.weight, additive.w_k.weight), dim=1), additive.v.weight[0]
    return None, None


def score_of_a_pair(attention, query, key):
    w, v = parameters_of(attention)
    if attention.score == "general":
        return query @ w @ key
    if attention.score == "concat":
        return v @ torch.tanh(w @ torch.cat((query, key)))
    return query @ key


def double_loop(attention, query, key, value, allowed, favour=None):
    """Score, softmax and sum, one pair at a time, over the keys that are allowed."""
    contexts, weights = [], []
    for b in range(query.shape[0]):
        for i in range(query.shape[1]):
            exp = [
                score_of_a_pair(attention, query[b, i], k).exp() * ok
                for k, ok in zip(key[b], allowed[b, i], strict=True)
            ]
            total = sum(exp) if any(allowed[b, i]) else 1.0
            row = torch.stack([e / total for e in exp])
            weights.append(row if favour is None else row * favour[b, i])
            contexts.append(sum(w * v for w, v in zip(weights[-1], value[b], strict=True)))
    shape = (query.shape[0], query.shape[1], -1)
    return torch.stack(contexts).view(shape), torch.stack(weights).view(shape)


@st.composite
def inputs(draw, most_keys=5):
    """Draw score, query, key, value in float64 and a mask or None."""
    score = draw(st.sampled_from(SCORES))
    batch, n_queries, n_keys = (
        draw(st.integers(1, 2)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, most_keys)),
    )
    query_dim, key_dim, d_value = (draw(st.integers(1, 4)) for _ in range(3))
    key_dim = query_dim if score == "dot" else key_dim
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    query, key, value = (
        torch.randn(batch, length, width, dtype=torch.float64, generator=rng).requires_grad_()
        for length, width in ((n_queries, query_dim), (n_keys, key_dim), (n_keys, d_value))
    )
    shape = [1 if draw(st.booleans()) else size for size in (batch, n_queries, n_keys)]
    mask = torch.rand(shape if draw(st.booleans()) else shape[1:], generator=rng) < 0.6
    return score, query, key, value, draw(st.sampled_from([None, mask])), rng


def everywhere(mask, query, key):
    """The mask for every pair: (batch, query, key)."""
    mask = torch.ones(1, 1) == 1 if mask is None else mask
    return mask.expand(query.shape[0], query.shape[1], key.shape[1])


def compare(ours, theirs, wanted):
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected)
    for actual, expected in zip(gradients(ours, wanted), gradients(theirs, wanted), strict=True):
        assert_close(actual, expected)


@settings(max_examples=60)
@given(inputs())
def test_equals_a_double_loop_in_values_and_gradients(case):
    score, query, key, value, mask, rng = case
    module = LuongAttention(query.shape[-1], key.shape[-1], score).double()
    randomise(module, rng)
    compare(
        list(module(query, key, value, mask)),
        list(double_loop(module, query, key, value, everywhere(mask, query, key))),
        [query, key, value, *module.parameters()],
    )


@pytest.mark.parametrize("score", SCORES)
def test_values_are_the_keys_unless_given(score):
    module, query, key = LuongAttention(4, 4, score), torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    for ours, theirs in zip(module(query, key), module(query, key, key), strict=True):
        assert torch.equal(ours, theirs)


def windows_and_favour(module, query, key, allowed, first_query):
    """Equations 9 and 10, one pair at a time: which keys are in the window, and the Gaussian."""
    reach, n_keys = module.half_width, key.shape[1]
    inside, favour = torch.zeros_like(allowed), []
    for b in range(query.shape[0]):
        for t in range(query.shape[1]):
            p = torch.tensor(float(first_query + t), dtype=query.dtype)
            if module.alignment == "predictive":
                length = max((s + 1 for s in range(n_keys) if allowed[b, t, s]), default=0)
                hidden = torch.tanh(module.w_p.weight @ query[b, t])
                p = length * torch.sigmoid(module.v_p.weight[0] @ hidden)
            for s in range(n_keys):
                inside[b, t, s] = allowed[b, t, s] and p - reach <= s <= p + reach
                sigma = reach / 2
                gaussian = torch.exp(-((s - p) ** 2) / (2 * sigma**2))
                favour.append(gaussian if module.alignment == "predictive" else torch.ones_like(p))
    return inside, torch.stack(favour).view(allowed.shape)


@settings(max_examples=60)
@given(
    inputs(most_keys=9),
    st.integers(1, 4),
    st.sampled_from(["monotonic", "predictive"]),
    st.integers(0, 4),
)
def test_local_equals_a_double_loop_in_values_and_gradients(case, reach, alignment, first_query):
    score, query, key, _, mask, rng = case
    module = LocalAttention(
        query.shape[-1], key.shape[-1], reach, score=score, alignment=alignment
    ).double()
    randomise(module, rng)
    if alignment == "predictive":
        with torch.no_grad():
            module.v_p.weight.mul_(3)  # spread p over the whole sequence
    allowed = everywhere(mask, query, key)
    inside, favour = windows_and_favour(module, query, key, allowed, first_query)
    ours = list(module(query, key, mask, first_query=first_query))
    theirs = list(double_loop(module.attention, query, key, key, inside, favour))
    compare(ours, theirs, [query, key, *module.parameters()])
    without, none = module(query, key, mask, first_query=first_query, need_weights=False)
    assert torch.equal(without, ours[0])
    assert none is None


@pytest.mark.parametrize("alignment", ["monotonic", "predictive"])
@pytest.mark.parametrize("score", SCORES)
def test_local_attention_does_not_see_padding(alignment, score):
    """Neither as keys nor as length: p of a padded sentence is p of the sentence alone."""
    module = LocalAttention(4, 4, 2, score=score, alignment=alignment).double()
    query, key = torch.randn(2, 3, 4).double(), torch.randn(2, 8, 4).double()
    mask = torch.arange(8) < torch.tensor([8, 5])[:, None, None]
    context, weights = module(query, key, mask)
    assert not weights[1, :, 5:].any()
    alone, their_weights = module(query[1:], key[1:, :5])
    assert_close(context[1:], alone)
    assert_close(weights[1:, :, :5], their_weights)
    torch.testing.assert_close(module(query, key.where(mask.mT, 1e9), mask)[0], context)


def test_the_gaussian_teaches_the_position():
    module = LocalAttention(4, 4, 2, score="dot")
    context, _ = module(torch.randn(1, 3, 4), torch.randn(1, 9, 4))
    context.sum().backward()
    assert module.w_p.weight.grad.any()
    assert module.v_p.weight.grad.any()


def test_a_window_has_at_most_2d_plus_1_keys_and_its_weights_sum_to_one():
    module = LocalAttention(4, 4, 3, score="dot", alignment="monotonic")
    _, weights = module(torch.randn(1, 20, 4), torch.randn(1, 20, 4))
    assert (weights > 0).sum(-1).tolist() == [[4, 5, 6, *[7] * 14, 6, 5, 4]]
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 20))


@pytest.mark.parametrize("alignment", ["monotonic", "predictive"])
def test_nothing_in_the_window_gives_zero_and_finite_gradients(alignment):
    module = LocalAttention(4, 4, 2, alignment=alignment)
    query, key = torch.randn(1, 2, 4, requires_grad=True), torch.randn(1, 6, 4, requires_grad=True)
    mask = torch.tensor([[False] * 6, [True] * 6])
    context, weights = module(query, key, mask)
    assert not context[0, 0].any()
    assert not weights[0, 0].any()
    for gradient in torch.autograd.grad(context.sum(), [query, key, *module.parameters()]):
        assert gradient.isfinite().all()
    beyond, _ = LocalAttention(4, 4, 2, alignment="monotonic")(query, key, first_query=20)
    assert not beyond.any()


def test_local_attention_without_weights_makes_no_query_times_key_tensor():
    sizes = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                sizes.append(out.untyped_storage().nbytes() // out.element_size())
            return out

    n, mask = 500, (torch.arange(500) < 400)[None, None]
    query, key = torch.randn(1, n, 4, requires_grad=True), torch.randn(1, n, 4)
    for alignment in ("monotonic", "predictive"):
        module = LocalAttention(4, 4, 2, alignment=alignment)
        with Watch():
            module(query, key, mask, need_weights=False)[0].sum().backward()
    assert n * 5 * 4 <= max(sizes) < n * n / 10  # the gathered keys are the largest


EIGHT, SIX = torch.zeros(2, 3, 8), torch.zeros(2, 5, 6)
REFUSED = {
    "dot of unequal widths": (
        lambda: LuongAttention(8, 6, "dot"),
        ValueError,
        'score="dot" needs queries and keys of one width, got query_dim=8 and key_dim=6; '
        'use score="general", which learns a matrix between them, or score="concat"',
    ),
    "local dot of unequal widths": (
        lambda: LocalAttention(8, 6, 2, score="dot"),
        ValueError,
        'score="dot" needs queries and keys of one width, got query_dim=8 and key_dim=6',
    ),
    "no such score": (
        lambda: LuongAttention(8, 8, "cosine"),
        ValueError,
        'score must be "dot", "general" or "concat", got \'cosine\'',
    ),
    "no such alignment": (
        lambda: LocalAttention(8, 8, 2, alignment="local-p"),
        ValueError,
        'alignment must be "monotonic" or "predictive", got \'local-p\'',
    ),
    "no window": (
        lambda: LocalAttention(8, 8, 0),
        ValueError,
        "half_width must be at least 1, got 0",
    ),
    "a query before the first": (
        lambda: LocalAttention(8, 6, 2)(EIGHT, SIX, first_query=-1),
        ValueError,
        "first_query must be at least 0, got -1",
    ),
}
for module in (LuongAttention(8, 6), LocalAttention(8, 6, 2)):
    kind = type(module).__name__
    REFUSED |= {
        f"{kind}, keys of another width": (
            lambda module=module: module(EIGHT, EIGHT),
            ValueError,
            "the last axis of key must be key_dim=6, got 8 in shape (2, 3, 8)",
        ),
        f"{kind}, another batch": (
            lambda module=module: module(EIGHT, SIX[:1]),
            ValueError,
            "query and key must agree in every axis before the last two (the batch)",
        ),
        f"{kind}, a mask with an axis of heads": (
            lambda module=module: module(EIGHT, SIX, mask=torch.ones(2, 1, 1, 5) == 1),
            ValueError,
            "mask of shape (2, 1, 1, 5) does not broadcast to the scores = (2, 3, 5); "
            "without an axis of heads, as padding_mask makes it, take mask[:, 0]",
        ),
    }


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_a_reason(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_names():
    general, concat = LuongAttention(2, 3), LuongAttention(2, 3, "concat")
    assert {n: tuple(p.shape) for n, p in general.named_parameters()} == {"w.weight": (3, 2)}
    assert {n: tuple(p.shape) for n, p in concat.named_parameters()} == {
        "additive.w_q.weight": (2, 2),
        "additive.w_k.weight": (2, 3),
        "additive.v.weight": (1, 2),
    }
    assert math.prod(p.numel() for p in LuongAttention(2, 2, "dot").parameters()) == 1  # none
    assert "score='general'" in repr(general)
