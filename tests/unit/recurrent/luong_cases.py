"""Random cases of Luong and local attention, and the double loop that both are compared with."""

import torch
from hypothesis import strategies as st

from tests.unit.cases import assert_close, gradients

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
