"""float16, bfloat16 and autocast: every mechanism against float64, within the type's own rounding.

The reference is computed in float64 from the same rounded numbers, so that what differs is the
arithmetic alone. Sums are taken in float32: the bound does not grow with the number of tokens.
"""

import copy

import pytest
import torch
from torch import nn

from attention import (
    DotProduct,
    LocalAttention,
    MultiHeadAttention,
    QKNorm,
    QKSequential,
    Rotary,
    SinusoidalPositionalEncoding,
    elu_plus_one,
    fused_attention,
    linear_attention,
    linear_attention_step,
    performer_attention,
    scaled_dot_product_attention,
    strided_attention,
)
from tests.unit.cases import ULPS, ULPS_OF_GRADIENTS, assert_close
from tests.unit.mechanisms import D_KEY, FUNCTIONS, HEADS, MODULES, N, one_token

HALVES = [torch.float16, torch.bfloat16]
# How many layers lie behind one another, each of which adds its rounding.
DEPTH = {
    "EncoderLayer": 2,
    "Encoder": 4,
    "DecoderLayer": 3,
    "Decoder": 6,
    "EncoderDecoder": 6,
    "BahdanauDecoder": 4,
    "LuongDecoder": 4,
}


def heads(n, dtype, d_value=D_KEY, seed=0):
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, 2, HEADS, n, D_KEY, generator=generator)
    value = torch.randn(2, HEADS, n, d_value, generator=generator)
    return [x.to(dtype).requires_grad_() for x in (query, key, value)]


def in_float64(inputs):
    return [x.detach().double().requires_grad_() for x in inputs]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_as_exact_as_its_type(name, dtype):
    call, inputs = FUNCTIONS[name].call, heads(N, dtype)
    exact = in_float64(inputs)
    output, expected = call(*inputs), call(*exact)
    assert output.dtype == dtype
    assert_close(output, expected)
    reads = FUNCTIONS[name].reads
    ours = torch.autograd.grad(output.float().square().sum(), [inputs[i] for i in reads])
    theirs = torch.autograd.grad(expected.square().sum(), [exact[i] for i in reads])
    for x, y in zip(ours, theirs, strict=True):
        assert x.dtype == dtype
        assert_close(x, y, ulps=ULPS_OF_GRADIENTS)
    with torch.no_grad():
        assert_close(call(*inputs), expected)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_under_autocast(name, dtype):
    call, inputs = FUNCTIONS[name].call, heads(N, torch.float32)
    expected = call(*in_float64(inputs))
    with torch.autocast("cpu", dtype=dtype):
        output = call(*inputs)
    assert output.dtype in (torch.float32, dtype)
    assert_close(output.to(dtype), expected, ulps=2 * ULPS)  # the inputs may be rounded too


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_as_exact_as_its_type(name, dtype):
    row = MODULES[name]
    torch.manual_seed(0)
    module = row.make().to(dtype)
    exact = copy.deepcopy(module).double()
    if isinstance(module, SinusoidalPositionalEncoding):
        exact = row.make().double()
    inputs = [x.to(dtype) if x.is_floating_point() else x for x in row.inputs(N)]
    expected = row.output(exact, *(x.double() if x.is_floating_point() else x for x in inputs))
    output = row.output(module, *inputs)
    assert output.dtype == dtype
    assert_close(output, expected, ulps=ULPS * DEPTH.get(name, 1))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", MODULES)
def test_a_module_under_autocast(name, dtype):
    row = MODULES[name]
    torch.manual_seed(0)
    module, inputs = row.make(), row.inputs(N)
    exact = copy.deepcopy(module).double()
    expected = row.output(exact, *(x.double() if x.is_floating_point() else x for x in inputs))
    with torch.autocast("cpu", dtype=dtype):
        output = row.output(module, *inputs)
    assert_close(output.to(dtype), expected, ulps=2 * ULPS * DEPTH.get(name, 1))


# What was wrong once, at the size where it was wrong.


@pytest.mark.parametrize("causal", [False, True])
def test_the_normaliser_of_linear_attention_does_not_overflow(causal):
    """4,000 keys of 64 columns in float16: the sums pass 65,504."""
    generator = torch.Generator().manual_seed(0)
    inputs = [x.half() for x in torch.randn(3, 1, 1, 4000, 64, generator=generator)]
    expected = linear_attention(*(x.double() for x in inputs), causal=causal)
    assert_close(linear_attention(*inputs, causal=causal), expected)


def test_the_state_of_linear_attention_goes_on_growing():
    """In bfloat16 a sum of ones stops at 256."""
    inputs = heads(600, torch.bfloat16)
    with torch.no_grad():
        output = one_token(*inputs)
        assert_close(output, linear_attention(*in_float64(inputs), causal=True))
        state = linear_attention_step(*(x[:, :, :1] for x in inputs))[1]
    assert state.dtype == torch.float32


def test_strided_attention_under_autocast_is_finite():
    inputs = heads(40, torch.float32)
    expected = strided_attention(*in_float64(inputs), stride=4)
    with torch.autocast("cpu", dtype=torch.float16):
        assert_close(strided_attention(*inputs, stride=4), expected, ulps=16)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_window_lies_where_it_should(dtype):
    """Positions near 3,000 are 2 or 16 apart in half precision."""
    torch.manual_seed(0)
    module = LocalAttention(8, 8, half_width=4).to(dtype)
    query, mask = torch.randn(1, 50, 8).to(dtype), torch.ones(1, 4000, dtype=torch.bool)
    p = module.positions(query, mask)
    expected = copy.deepcopy(module).double().positions(query.double(), mask)
    assert p.dtype == torch.float32
    assert (p - expected).abs().max() < 0.01
    with torch.autocast("cpu", dtype=dtype):
        assert torch.equal(module.positions(query, mask), p)


def test_the_gradients_of_a_causal_performer_are_finite():
    inputs = [8 * x.detach() for x in heads(200, torch.float16)]
    inputs = [x.requires_grad_() for x in inputs]
    projection = torch.randn(16, D_KEY, generator=torch.Generator().manual_seed(0))
    performer_attention(*inputs, projection, causal=True).float().sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)


def test_a_cache_made_under_autocast_takes_its_keys():
    module, x = MultiHeadAttention(8, 2, n_kv_heads=1), torch.randn(1, 3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        cache = module.new_cache(1, max_length=3)
        steps = [module(token, cache=cache)[0] for token in x.split(1, dim=1)]
        assert_close(torch.cat(steps, 1), module(x, causal=True)[0], ulps=16)


def test_the_features_are_those_of_float32():
    x = torch.linspace(-8, 8, 33).half()
    assert_close(elu_plus_one(x), elu_plus_one(x.double()))


def test_layers_of_another_library_stay_as_they_are():
    """A layer norm in float32 between layers under autocast, as torch makes it."""
    module = MODULES["Encoder"].make()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = module(*MODULES["Encoder"].inputs(N))
    assert output.dtype == torch.float32
    assert isinstance(module.norm, nn.LayerNorm)


LONG = 256.0  # a score of 65,536 and more is beyond float16
BEYOND = {  # query, keys, which of them may be seen
    "one key": ([LONG], [LONG], [True]),
    "a masked key has the larger score": ([LONG], [-LONG, 0.0], [True, False]),
    "two keys": ([LONG], [LONG, LONG], [True, True]),
}


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", BEYOND)
def test_scores_beyond_float16_are_weighed(name, autocast):
    q, keys, seen = BEYOND[name]
    dtype = torch.float32 if autocast else torch.float16
    query = torch.tensor(q, dtype=dtype)[None, None, :, None]
    key = torch.tensor(keys, dtype=dtype)[None, None, :, None]
    value = 3.0 + torch.arange(len(keys), dtype=dtype)[None, None, :, None]
    mask, wide = torch.tensor([seen]), [x.double() for x in (query, key, value)]
    expected, weights = scaled_dot_product_attention(*wide, mask)
    with torch.autocast("cpu", dtype=torch.float16, enabled=autocast):
        output, found = scaled_dot_product_attention(query, key, value, mask)
        fused = fused_attention(query, key, value, mask)
        attention = DotProduct()(query, key, value, mask)[0]
    for x in (output, fused, attention):
        torch.testing.assert_close(x.double(), expected, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(found.double(), weights, atol=1e-3, rtol=1e-3)


SUMS = {"decayed_linear_attention", "gated_delta_rule"}  # of no weights: as large as the queries


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - SUMS))
def test_long_queries_and_keys_give_numbers(name):
    """In self-attention a long query meets itself, and every mechanism has to weigh it."""
    x = heads(N, torch.float16)[0].detach().sign() * LONG
    value = heads(N, torch.float16)[2].detach()
    assert FUNCTIONS[name].call(x, x, value).isfinite().all()


@pytest.mark.parametrize("kind", ["latent", "normed queries and keys"])
def test_norms_in_float32_leave_a_cache_its_dtype(monkeypatch, kind):
    """On accelerators autocast norms in float32 since torch 2.12; on a CPU it does not yet."""
    normed = nn.RMSNorm.forward
    monkeypatch.setattr(nn.RMSNorm, "forward", lambda self, x: normed(self, x.float()))
    module, x = MODULES["LatentAttention, whole"].make(), torch.randn(1, 4, HEADS * D_KEY)
    if kind != "latent":
        attend = DotProduct(transform=QKSequential(QKNorm(D_KEY), Rotary(D_KEY)))
        module = MultiHeadAttention(HEADS * D_KEY, HEADS, n_kv_heads=2, attend=attend)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        cache = module.new_cache(1, max_length=4)
        steps = [module(token, cache=cache)[0] for token in x.split(1, dim=1)]
        assert_close(torch.cat(steps, 1), module(x, causal=True)[0], ulps=16)
