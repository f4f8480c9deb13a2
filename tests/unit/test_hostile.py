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
    GroupedQueryAttention,
    KeyValueCache,
    LuongDecoder,
    linear_attention,
    linear_attention_step,
    linformer_attention,
    lsh_attention,
    lsh_buckets,
    performer_attention,
    random_feature_attention,
    scaled_dot_product_attention,
)
from tests.unit.cases import assert_close
from tests.unit.mechanisms import (
    D_KEY,
    D_MODEL,
    E_AND_F,
    FUNCTIONS,
    HEADS,
    MODULES,
    OTHERS,
    N,
    one_token,
    vectors,
)

pytestmark = pytest.mark.usefixtures("as_a_reader")

QUERY, KEY, VALUE = torch.randn(3, 2, HEADS, N, D_KEY, generator=torch.Generator().manual_seed(0))
TRUE = torch.ones(N, N, dtype=torch.bool)


def test_every_mechanism_is_in_the_table():
    tried = {name.split(",")[0] for name in (*FUNCTIONS, *MODULES)}
    assert tried | OTHERS == set(attention.__all__)


# What is wrong with (query, key, value, mask), and a word that the error must hold.
WRONG = {
    "a list": ([[1.0]], KEY, VALUE, None, "query must be a tensor"),
    "integers": (QUERY.long(), KEY, VALUE, None, "query must hold floating-point numbers"),
    "an axis too few": (QUERY[0, 0], KEY, VALUE, None, "query"),
    "no token": (QUERY[:, :, :0], KEY[:, :, :0], VALUE[:, :, :0], None, "empty sequence"),
    "no column": (QUERY[..., :0], KEY[..., :0], VALUE, None, "query are empty"),
    "no column of values": (QUERY, KEY, VALUE[..., :0], None, "value are empty"),
    "another width of keys": (QUERY, KEY[..., :5], VALUE, None, "key"),
    "another batch of values": (QUERY, KEY, VALUE[:1], None, "value"),
    "another batch of keys": (QUERY, KEY[:1], VALUE[:1], None, "key"),
    "fewer values than keys": (QUERY, KEY, VALUE[:, :, :-1], None, "value"),
    "another dtype of keys": (QUERY, KEY.double(), VALUE, None, "key is torch.float64 and query"),
    "another dtype of values": (QUERY, KEY, VALUE.half(), None, "value is torch.float16 and query"),
    "a mask of floats": (QUERY, KEY, VALUE, TRUE[:1].float(), "mask must be boolean"),
    "a mask of no axis": (QUERY, KEY, VALUE, TRUE[0, 0], "mask has 0 axes"),
    "a mask of one axis": (QUERY, KEY, VALUE, TRUE[0], "mask has 1 axes"),
    "a mask of three axes": (QUERY, KEY, VALUE, TRUE[:2, None], "mask has 3 axes"),
    "a mask of another length": (QUERY, KEY, VALUE, TRUE[:1, :4], "mask of shape (1, 4)"),
}
# lsh_attention takes no keys: they are its queries.
WITHOUT_KEYS = {name for name in WRONG if "keys" in name and "values" not in name}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_refuses_in_our_words(name, wrong):
    if name == "lsh_attention" and wrong in WITHOUT_KEYS:
        return  # there is no such argument
    *inputs, words = WRONG[wrong]
    before = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        FUNCTIONS[name].call(*inputs)
    for x, y in zip(inputs, before, strict=True):
        assert not isinstance(x, torch.Tensor) or torch.equal(x, y)


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


TAKE_A_MASK = [name for name in TAKE_VECTORS if name not in ("FeedForward", "LearnedPositions")]


@pytest.mark.parametrize("name", TAKE_A_MASK)
def test_a_module_refuses_a_mask_of_one_axis(name):
    row = MODULES[name]
    n_keys = row.inputs(N)[-1].shape[1]
    with pytest.raises(ValueError, match="mask has 1 axes"):
        row.make()(*row.inputs(N), mask=torch.ones(n_keys, dtype=torch.bool), **row.options)


@pytest.mark.parametrize("make", [BahdanauDecoder, LuongDecoder])
def test_greedy_decoding_of_an_empty_batch(make):
    decoder = make(9, 5, D_MODEL, 6)
    ids, weights = decoder.greedy(vectors(N)[:0], start_id=1, end_id=2, max_length=3)
    assert ids.shape[0] == weights.shape[0] == 0


Q, V = QUERY[:1, :1], VALUE[:1, :1]
BUCKETS = torch.zeros(1, 1, 1, N, dtype=torch.int64)
STATE = torch.zeros(1, 1, D_KEY, D_KEY + 1)
TOKEN = Q[:, :, :1]
P = torch.randn(8, D_KEY)


def cache(**options):
    return KeyValueCache(batch=1, n_kv_heads=1, max_length=8, d_key=D_KEY, **options)


# Arguments that only one function has.
OWN = {
    "a scale that is no number": (
        lambda: scaled_dot_product_attention(Q, Q, V, scale=float("nan")),
        ValueError,
        "scale must be a finite number, got nan",
    ),
    "a scale without end": (
        lambda: random_feature_attention(Q, Q, V, P, scale=float("inf")),
        ValueError,
        "scale must be a finite number, got inf",
    ),
    "several tokens in a step": (
        lambda: linear_attention_step(Q[:, :, :5], Q[:, :, :5], V[:, :, :5]),
        ValueError,
        "a step takes one token, got 5",
    ),
    "a state of another width": (
        lambda: linear_attention_step(TOKEN, TOKEN, TOKEN, STATE[..., 1:]),
        ValueError,
        "state must be what the step before returned",
    ),
    "a state of another dtype": (
        lambda: linear_attention_step(TOKEN, TOKEN, TOKEN, STATE.double()),
        TypeError,
        "state must be what the step before returned, torch.float32, got torch.float64",
    ),
    "a state of half precision": (
        lambda: linear_attention_step(*[TOKEN.half()] * 3, STATE.half()),
        TypeError,
        "state must be what the step before returned, torch.float32, got torch.float16",
    ),
    "a state that is a cache": (
        lambda: linear_attention_step(TOKEN, TOKEN, TOKEN, cache()),
        TypeError,
        "state must be a tensor or None, got KeyValueCache",
    ),
    "a projection of another width": (
        lambda: performer_attention(Q, Q, V, P[:, 1:]),
        ValueError,
        "the last axis of projection must be d_key=6, got 5",
    ),
    "a projection of integers": (
        lambda: random_feature_attention(Q, Q, V, P.long()),
        TypeError,
        "projection must hold floating-point numbers",
    ),
    "features of another width": (
        lambda: attention.positive_features(Q, P[:, 1:]),
        ValueError,
        "the last axis of projection must be d_key=6, got 5",
    ),
    "sines of a single vector": (
        lambda: attention.fourier_features(Q[0, 0, 0], P),
        ValueError,
        "x must have shape (..., seq, d_key), got 1 dimensions: (6,)",
    ),
    "mixtures of another dtype": (
        lambda: linformer_attention(Q, Q, V, *E_AND_F.double()),
        TypeError,
        "E is torch.float64 and query",
    ),
    "buckets of floats": (
        lambda: lsh_attention(Q, V, BUCKETS.float(), chunk_length=4),
        TypeError,
        "buckets must be int64, got torch.float32",
    ),
    "negative buckets": (
        lambda: lsh_attention(Q, V, BUCKETS - 2, chunk_length=4),
        ValueError,
        "buckets are numbers from 0 on, got -2",
    ),
    "buckets that no address reaches": (
        lambda: lsh_attention(Q, V, BUCKETS + 2**31, chunk_length=4),
        ValueError,
        "buckets are numbers below 2**31, got",
    ),
    "no buckets": (
        lambda: attention.ReformerAttention(8, 2, n_buckets=(), n_rounds=1, chunk_length=4),
        ValueError,
        "n_buckets must be an even number or two of them, got ()",
    ),
    "buckets in a list": (
        lambda: lsh_attention(Q, V, [0], chunk_length=4),
        TypeError,
        "buckets must be a tensor, got list",
    ),
    "no round": (
        lambda: lsh_attention(Q, V, BUCKETS[:, :, :0], chunk_length=4),
        ValueError,
        "buckets has 0 rounds, and can have 1 to 255",
    ),
    "more rounds than a byte counts": (
        lambda: lsh_attention(Q, V, BUCKETS.expand(1, 1, 256, N), chunk_length=4),
        ValueError,
        "buckets has 256 rounds, and can have 1 to 255",
    ),
    "rotations of another dtype": (
        lambda: lsh_buckets(Q, torch.randn(1, D_KEY, 2, dtype=torch.float64)),
        TypeError,
        "rotations is torch.float64 and x",
    ),
    "a projected key of another width": (
        lambda: attention.AdditiveAttention(D_KEY, D_KEY, 5)(
            Q[0], Q[0], projected_key=torch.zeros(1, N, 4)
        ),
        ValueError,
        "projected_key must have shape (batch, key, hidden_dim) = (1, 11, 5), got (1, 11, 4)",
    ),
    "a cache of another kind": (
        lambda: GroupedQueryAttention(D_MODEL, HEADS, 2)(vectors(1), cache=(TOKEN, TOKEN)),
        TypeError,
        "cache must be a KeyValueCache, a RollingCache or None, got tuple; "
        "new_cache(batch, max_length) makes a KeyValueCache",
    ),
    "a cache of another dtype": (
        lambda: cache(dtype=torch.float64).append(TOKEN, TOKEN),
        TypeError,
        "key is torch.float32, and this cache holds torch.float64",
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_an_argument_of_one_function_is_refused(name):
    call, error, words = OWN[name]
    with pytest.raises(error, match=re.escape(words)):
        call()


def test_a_refused_call_leaves_the_cache_as_it_was():
    module = GroupedQueryAttention(D_MODEL, HEADS, 2)
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
    state = torch.rand(1, 1, D_KEY, D_KEY + 1)
    before = state.clone()
    linear_attention_step(TOKEN, TOKEN, TOKEN, state)
    assert torch.equal(state, before)


def test_chunks_longer_than_the_sequence_cost_no_more():
    expected = lsh_attention(Q, V, BUCKETS, chunk_length=N)
    assert_close(lsh_attention(Q, V, BUCKETS, chunk_length=10**9), expected)


def test_the_recurrent_form_is_the_causal_one():
    expected = linear_attention(QUERY, KEY, VALUE, causal=True)
    assert_close(one_token(QUERY, KEY, VALUE), expected, ulps=16)


@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if f.causal])
def test_no_key_of_the_future_counts(name):
    later = KEY.clone(), VALUE.clone()
    for x in later:
        x[:, :, 6:] = torch.randn(2, HEADS, N - 6, D_KEY)
    output = FUNCTIONS[name].call(QUERY, KEY, VALUE)
    if name == "performer_attention, causal":  # each feature is divided by its largest
        torch.testing.assert_close(
            FUNCTIONS[name].call(QUERY, *later)[:, :, :6], output[:, :, :6], rtol=1e-4, atol=1e-5
        )
    else:
        assert_close(FUNCTIONS[name].call(QUERY, *later)[:, :, :6], output[:, :, :6])
