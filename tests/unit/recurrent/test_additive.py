import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import padding_mask
from attention.recurrent.additive import AdditiveAttention
from tests.unit.cases import assert_close, gradients, randomise
from tests.unit.refusals import refusals


@st.composite
def additive_cases(draw):
    """Draw a module, query, key, value or None, and a mask or None, in float64."""
    batch, n_queries, n_keys = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 5)),
    )
    query_dim, key_dim, hidden_dim, d_value = (draw(st.integers(1, 4)) for _ in range(4))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    module = AdditiveAttention(query_dim, key_dim, hidden_dim).double()
    randomise(module, rng)
    query, key, value = (
        torch.randn(batch, length, width, dtype=torch.float64, generator=rng).requires_grad_()
        for length, width in ((n_queries, query_dim), (n_keys, key_dim), (n_keys, d_value))
    )
    shape = [1 if draw(st.booleans()) else size for size in (batch, n_queries, n_keys)]
    mask = torch.rand(shape if draw(st.booleans()) else shape[1:], generator=rng) < 0.6
    return (
        module,
        query,
        key,
        draw(st.sampled_from([None, value])),
        draw(st.sampled_from([None, mask])),
    )


def double_loop(module, query, key, value, mask):
    """The paper's formulas for one pair at a time, with the score's two forms side by side."""
    value = key if value is None else value
    (batch, n_queries, _), n_keys = query.shape, key.shape[1]
    allowed = torch.ones(1, 1, 1) == 1 if mask is None else mask
    allowed = allowed.expand(batch, n_queries, n_keys)
    one_matrix = torch.cat((module.w_q.weight, module.w_k.weight), dim=1)
    contexts, weights = [], []
    for b in range(batch):
        for i in range(n_queries):
            exp = []
            for j in range(n_keys):
                concatenated = one_matrix @ torch.cat((query[b, i], key[b, j]))
                added = module.w_q.weight @ query[b, i] + module.w_k.weight @ key[b, j]
                assert_close(added, concatenated)
                score = module.v.weight[0] @ concatenated.tanh()
                exp.append(score.exp() if allowed[b, i, j] else score * 0)
            total = sum(exp) if any(allowed[b, i]) else 1.0
            weights.append(torch.stack([e / total for e in exp]))
            contexts.append(sum(w * v for w, v in zip(weights[-1], value[b], strict=True)))
    shape = (batch, n_queries, -1)
    return torch.stack(contexts).view(shape), torch.stack(weights).view(shape)


@settings(max_examples=30)
@given(additive_cases())
def test_equals_a_double_loop_in_values_and_gradients(case):
    """Projected keys give the same, and are not projected again."""
    module, query, key, value, mask = case
    ours, theirs = list(module(query, key, value, mask)), list(double_loop(*case))
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected)
    inputs = [query, key, *([] if value is None else [value]), *module.parameters()]
    for actual, expected in zip(gradients(ours, inputs), gradients(theirs, inputs), strict=True):
        assert_close(actual, expected)
    projected = module.w_k(key)
    module.w_k.weight = torch.nn.Parameter(torch.full_like(module.w_k.weight, math.nan))
    again = module(query, key, value, mask, projected_key=projected)
    assert torch.equal(again[0], ours[0])
    assert torch.equal(again[1], ours[1])


def test_names_and_repr():
    module = AdditiveAttention(2, 3, 4)
    shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    assert shapes == {"w_q.weight": (4, 2), "w_k.weight": (4, 3), "v.weight": (1, 4)}
    assert "query_dim=2, key_dim=3, hidden_dim=4" in repr(module)


def test_a_masked_key_stays_hidden_however_low_the_other_scores_are():
    attention = AdditiveAttention(query_dim=2, key_dim=2, hidden_dim=3)
    query, key = torch.ones(1, 1, 2), torch.ones(1, 3, 2)
    with torch.no_grad():
        for w, number in ((attention.w_q, 1.0), (attention.w_k, 1.0), (attention.v, -1e6)):
            w.weight.fill_(number)
        context, weights = attention(query, key, mask=torch.tensor([[True, False, True]]))
    torch.testing.assert_close(weights, torch.tensor([[[0.5, 0.0, 0.5]]]))
    torch.testing.assert_close(context, key[:, :1])


test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: AdditiveAttention(4, 6, 8)(
                torch.zeros(2, 3, 4),
                torch.zeros(2, 5, 6),
                mask=padding_mask(torch.ones(2, 5, dtype=torch.long), 0),
            ),
            "mask of shape (2, 1, 1, 5) does not broadcast to the scores = (2, 3, 5); "
            "without an axis of heads, as padding_mask makes it, take mask[:, 0]",
        )
    ]
)
