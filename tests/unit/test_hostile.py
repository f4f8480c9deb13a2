"""Inputs that nobody meant, given to every public mechanism: it works, or says what is wrong.

Never a wrong number without a word, never torch's own words for a wrong argument, and after a
refusal nothing has changed: no input, no cache, no state.
"""

import re

import pytest
import torch

import attention
from attention import (
    BahdanauDecoder,
    LuongDecoder,
    MultiHeadAttention,
    linear_attention_step,
    lsh_attention,
)
from tests.unit.cases import assert_close
from tests.unit.mechanisms import (
    D_KEY,
    D_MODEL,
    FUNCTIONS,
    HEADS,
    MODULES,
    OTHERS,
    N,
    vectors,
)

pytestmark = pytest.mark.usefixtures("as_a_reader")

QUERY, KEY, VALUE = torch.randn(3, 2, HEADS, N, D_KEY, generator=torch.Generator().manual_seed(0))
TRUE = torch.ones(N, N, dtype=torch.bool)


def test_every_mechanism_is_in_the_table():
    tried = {name.split(",")[0] for name in (*FUNCTIONS, *MODULES)}
    either = (tried | OTHERS) ^ set(attention.__all__)
    assert not either, f"in __all__ or in mechanisms.py alone (masks: OTHERS): {either}"


# What is wrong with (query, key, value, mask) in more than one of them, or with an axis too many:
# what is wrong with one argument alone, `test_one_wrong_argument` tries.
WRONG = {
    "no token": (QUERY[:, :, :0], KEY[:, :, :0], VALUE[:, :, :0], None, "empty sequence"),
    "no column": (QUERY[..., :0], KEY[..., :0], VALUE, None, "query are empty"),
    "no column of values": (QUERY, KEY, VALUE[..., :0], None, "value are empty"),
    "another batch of keys": (QUERY, KEY[:1], VALUE[:1], None, "must agree in every axis"),
    "a mask of three axes": (QUERY, KEY, VALUE, TRUE[:2, None], "mask has 3 axes"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_refuses_in_our_words(name):
    for wrong, (*inputs, words) in WRONG.items():
        if (name, wrong) == ("lsh_attention", "another batch of keys"):
            continue  # its keys are its queries
        with pytest.raises((ValueError, TypeError), match=re.escape(words)):
            FUNCTIONS[name].call(*inputs)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_empty_batch_works(name):
    query, key, value = (x[:0].clone().requires_grad_() for x in (QUERY, KEY, VALUE[..., :5]))
    for mask in (None, torch.ones(0, 1, 1, N, dtype=torch.bool)):
        output = FUNCTIONS[name].call(query, key, value, mask)
        assert output.shape == (0, HEADS, N, 5)
        output.sum().backward()
        with torch.no_grad():
            assert FUNCTIONS[name].call(query, key, value, mask).shape == (0, HEADS, N, 5)


@pytest.mark.parametrize("name", MODULES)
def test_an_empty_batch_works_in_a_module(name):
    row = MODULES[name]
    module, inputs = row.make(), row.inputs(N)
    whole = row.output(module, *inputs)
    assert row.output(module, *(x[:0] for x in inputs)).shape == (0, *whole.shape[1:])


TAKE_VECTORS = [
    name
    for name, row in MODULES.items()
    if row.inputs(N)[-1].is_floating_point() and list(row.make().parameters())
]


@pytest.mark.parametrize("name", TAKE_VECTORS)
def test_a_module_refuses_another_dtype_than_its_own(name):
    row = MODULES[name]
    inputs = [x.double() if x.is_floating_point() else x for x in row.inputs(N)]
    words = r"(query|x|encoded) is torch.float64 and the parameters of \w+ are torch.float32"
    with pytest.raises(TypeError, match=words):
        row.output(row.make(), *inputs)


@pytest.mark.parametrize("make", [BahdanauDecoder, LuongDecoder])
def test_greedy_decoding_of_an_empty_batch(make):
    decoder = make(9, 5, D_MODEL, 6)
    ids, weights = decoder.greedy(vectors(N)[:0], start_id=1, end_id=2, max_length=3)
    assert ids.shape[0] == weights.shape[0] == 0


def test_a_refused_call_leaves_the_cache_as_it_was():
    module = MultiHeadAttention(D_MODEL, HEADS, n_kv_heads=2)
    x, stored = vectors(3), module.new_cache(2, max_length=8)
    with torch.no_grad():
        expected = module(x, causal=True)[0]
        module(x[:, :2], causal=True, cache=stored)
        before = stored.length, stored.keys.clone(), stored.values.clone()
        refused = [
            {"mask": torch.ones(1, dtype=torch.bool)},
            {"mask": torch.ones(1, 2, dtype=torch.bool)},
            {"mask": torch.ones(1, 3)},
            {"key": x},
        ]
        for wrong in refused:
            with pytest.raises((ValueError, TypeError)):
                module(x[:, 2:], **wrong, cache=stored)
        for x_wrong in (x[:, 2:].double(), x[:1, 2:], x[:, 2:, :5], torch.zeros(2, 7, D_MODEL)):
            with pytest.raises((ValueError, TypeError)):
                module(x_wrong, cache=stored)
        assert stored.length == before[0] == 2
        assert torch.equal(stored.keys, before[1]) and torch.equal(stored.values, before[2])
        assert_close(module(x[:, 2:], cache=stored)[0], expected[:, 2:])


def test_a_step_does_not_change_the_state_in_place():
    token, state = QUERY[:1, :1, :1], torch.rand(1, 1, D_KEY, D_KEY + 1)
    before = state.clone()
    linear_attention_step(token, token, token, state)
    assert torch.equal(state, before)


def test_chunks_longer_than_the_sequence_cost_no_more():
    inputs = QUERY[:1, :1], VALUE[:1, :1], torch.zeros(1, 1, 1, N, dtype=torch.int64)
    expected = lsh_attention(*inputs, chunk_length=N)
    assert_close(lsh_attention(*inputs, chunk_length=10**9), expected)
