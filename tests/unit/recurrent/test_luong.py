import math

import pytest
import torch
from hypothesis import given, settings

from attention.recurrent.luong import LuongAttention
from tests.unit.cases import randomise
from tests.unit.recurrent.luong_cases import SCORES, compare, double_loop, everywhere, inputs
from tests.unit.refusals import refusals


@settings(max_examples=30)
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


test_bad_input_is_refused_with_a_reason = refusals(
    [
        (
            lambda: LuongAttention(8, 6, "dot"),
            'score="dot" needs queries and keys of one width, got query_dim=8 and key_dim=6; '
            'use score="general", which learns a matrix between them, or score="concat"',
        ),
        (
            lambda: LuongAttention(8, 8, "cosine"),
            'score must be "dot", "general" or "concat", got \'cosine\'',
        ),
    ]
)
