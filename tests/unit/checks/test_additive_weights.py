"""check_additive_weights: what a learner would write, right and wrong; the bank has other code."""

import pytest
import torch
from torch.nn import functional as F

from attention import AdditiveAttention
from attention.checks import check_additive_weights

pytestmark = pytest.mark.usefixtures("as_a_reader")


def with_the_module(query, key, w_q, w_k, v_a):
    attention = AdditiveAttention(query.shape[-1], key.shape[-1], len(v_a))
    attention.load_state_dict({"w_q.weight": w_q, "w_k.weight": w_k, "v.weight": v_a[None]})
    return attention(query, key)[1]


def pair_by_pair(query, key, w_q, w_k, v_a):
    rows = [
        [[v_a @ torch.tanh(w_q @ q + w_k @ k) for k in keys] for q in queries]
        for queries, keys in zip(query, key, strict=True)
    ]
    return F.softmax(torch.tensor(rows), dim=2)


def side_by_side(query, key, w_q, w_k, v_a):
    """The paper's other form: one matrix, of the two side by side, and [query; key]."""
    shape = (query.shape[0], query.shape[1], key.shape[1], query.shape[2])
    both = torch.cat((query[:, :, None].expand(shape), key[:, None].expand(shape)), dim=-1)
    return F.softmax(F.linear(both, torch.cat((w_q, w_k), dim=1)).tanh() @ v_a, dim=-1)


@pytest.mark.parametrize("function", [with_the_module, pair_by_pair, side_by_side])
def test_a_right_variant_passes(function):
    for seed in (0, 1, 2):
        assert check_additive_weights(function, seed=seed).passed


def by_einsum(squash=torch.tanh, before=None, dim=-1, plus=torch.add):
    def function(query, key, w_q, w_k, v_a):
        for_query = torch.einsum("bqd,hd->bqh", query, w_q).unsqueeze(2)
        for_key = torch.einsum("bkd,hd->bkh", key, w_k).unsqueeze(1)
        if before:
            for_query, for_key = before(for_query), before(for_key)
        scores = torch.einsum("bqkh,h->bqk", squash(plus(for_query, for_key)), v_a)
        return torch.exp(scores) / torch.exp(scores).sum(dim, keepdim=True)

    return function


def test_a_learners_mistake_is_named():
    def swapped(query, key, w_q, w_k, v_a):
        return by_einsum()(query, key, w_k, w_q, v_a)

    named = {
        "without_tanh": by_einsum(squash=lambda x: x),
        "tanh_of_each_part": by_einsum(squash=lambda x: x, before=torch.tanh),
        "softmax_over_queries": by_einsum(dim=1),
        "multiplied": by_einsum(plus=torch.mul),
        "matrices_swapped": swapped,
        "the_context": lambda *inputs: with_the_module(*inputs) @ inputs[1],
    }
    for name, function in named.items():
        assert check_additive_weights(function).mistakes == (name,)
    message = " ".join(check_additive_weights(named["without_tanh"]).paragraphs)
    assert "Your rows of queries 0 and 1 differ by 0.00 at most." in message


def test_a_mistake_that_raises_an_error_is_named():
    def added_as_they_are(query, key, w_q, w_k, v_a):
        return F.softmax(torch.tanh(F.linear(query, w_q) + F.linear(key, w_k)) @ v_a, dim=2)

    def one_axis(query, key, w_q, w_k, v_a):
        pairs = F.linear(query, w_q).unsqueeze(2) + F.linear(key, w_k)
        return F.softmax(pairs.tanh() @ v_a, dim=2)

    def transposed(query, key, w_q, w_k, v_a):
        for_query = torch.matmul(query, w_q)
        return for_query.unsqueeze(2) + torch.matmul(key, w_k).unsqueeze(1)

    def keys_transposed(query, key, w_q, w_k, v_a):
        return F.linear(query, w_q).unsqueeze(2) + torch.matmul(key, w_k).unsqueeze(1)

    named = {
        "not_paired": added_as_they_are,
        "paired_on_one_side": one_axis,
        "not_transposed": transposed,
        "keys_not_transposed": keys_transposed,
    }
    for name, function in named.items():
        for seed in (0, 1, 2):
            assert check_additive_weights(function, seed=seed).mistakes == (name,)
