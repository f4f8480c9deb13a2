import pytest
import torch
from torch.nn import functional as F

from attention import merge_heads, padding_mask, split_heads
from attention.linear.delta_rule import (
    GatedDeltaNetAttention,
    decayed_linear_attention,
    gated_delta_rule,
    gated_delta_rule_step,
)
from tests.unit.cases import assert_close, gradients, randomise
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import LargestTensor, paddings, qkv

BATCH, HEADS, D_KEY, D_VALUE = 2, 2, 3, 4  # as qkv makes them


def gates(seq, *, shape=None, seed=1):
    """β and α between 0 and 1, in float64."""
    rng = torch.Generator().manual_seed(seed)
    shape = (BATCH, HEADS, seq) if shape is None else shape
    return [torch.rand(shape, dtype=torch.float64, generator=rng).requires_grad_() for _ in "βα"]


def with_unit_keys(inputs):
    query, key, value = inputs
    return [query, F.normalize(key.detach(), dim=-1).requires_grad_(), value]


def a_state(seed=2):
    rng = torch.Generator().manual_seed(seed)
    shape = (BATCH, HEADS, D_KEY, D_VALUE)
    return torch.randn(shape, dtype=torch.float64, generator=rng).requires_grad_()


def in_a_loop(query, key, value, beta, alpha, padding=None, state=None):
    """The papers' recurrence, one batch, head and token at a time, with values in the state's rows.

    S (α (I - β k kᵀ)) + β v kᵀ; without β, α S + v kᵀ. A token of padding leaves S as it was.
    """
    batch, heads, seq, d_key = query.shape
    whole = torch.ones(batch, heads, seq, dtype=query.dtype)
    keeps = whole == 1
    if padding is not None:
        keeps = (padding & torch.ones(batch, heads, 1, seq, dtype=torch.bool))[:, :, 0]
    alpha = whole if alpha is None else alpha * whole
    beta = None if beta is None else beta * whole
    outputs, states = [], []
    for b in range(batch):
        for h in range(heads):
            S = torch.zeros(value.shape[-1], d_key, dtype=query.dtype)
            if state is not None:
                S = state[b, h].T
            for t in range(seq):
                q, k, v = query[b, h, t], key[b, h, t], value[b, h, t]
                if beta is None:
                    written = alpha[b, h, t] * S + torch.outer(v, k)
                else:
                    forgets = torch.eye(d_key) - beta[b, h, t] * torch.outer(k, k)
                    written = S @ (alpha[b, h, t] * forgets) + beta[b, h, t] * torch.outer(v, k)
                S = torch.where(keeps[b, h, t], written, S)
                outputs.append(S @ q)
            states.append(S.T)
    d_value = value.shape[-1]
    return (
        torch.stack(outputs).view(batch, heads, seq, d_value),
        torch.stack(states).view(batch, heads, d_key, d_value),
    )


def assert_equal_in_values_and_gradients(ours, theirs, leaves):
    for actual, wanted in zip(ours, theirs, strict=True):
        assert_close(actual, wanted)
    found, expected = (gradients(list(outputs), leaves) for outputs in (ours, theirs))
    for actual, wanted in zip(found, expected, strict=True):
        assert_close(actual, wanted)


# The number of tokens, the length of a chunk, and the shape of the gates.
SIZES = [
    (1, 64, (BATCH, HEADS, 1)),
    (7, 3, (BATCH, HEADS, 7)),
    (7, 64, (1, HEADS, 1)),
    (8, 4, (1, 1, 8)),
    (9, 1, (BATCH, 1, 1)),
]


@pytest.mark.parametrize("padding", list(paddings(1)))
@pytest.mark.parametrize(("seq", "chunk", "shape"), SIZES)
@pytest.mark.parametrize(
    ("rule", "goes_on"), [("delta", True), ("gated", False), ("gated", True), ("decay", True)]
)
def test_it_equals_a_loop(seq, chunk, shape, padding, rule, goes_on):
    """Also where a gate is 0, which forgets everything or writes nothing, and where it is 1."""
    inputs, padding, state = with_unit_keys(qkv(seq)), paddings(seq)[padding], a_state()
    beta, alpha = gates(seq, shape=shape)
    with torch.no_grad():
        beta[..., 1::5], beta[..., 2::5], alpha[..., 3::5], alpha[..., 4::5] = 0, 1, 0, 1
    beta, alpha = (None if rule == "decay" else beta), (None if rule == "delta" else alpha)
    state = state if goes_on else None
    leaves = [x for x in (*inputs, beta, alpha, state) if x is not None]
    before = [x.detach().clone() for x in leaves]
    if rule == "decay":
        ours = decayed_linear_attention(*inputs, alpha, padding, chunk=chunk, state=state)
    else:
        ours = gated_delta_rule(*inputs, beta, alpha, padding, chunk=chunk, state=state)
    theirs = in_a_loop(*inputs, beta, alpha, padding, state)
    assert_equal_in_values_and_gradients(ours, theirs, leaves)
    assert all(torch.equal(x, y) for x, y in zip(leaves, before, strict=True))
    if padding is not None and not padding.any():
        assert goes_on or not ours[0].any()
        assert torch.equal(ours[1], torch.zeros_like(ours[1]) if state is None else state)


@pytest.mark.parametrize("fades", [False, True])
def test_the_state_goes_on_where_it_was_left(fades):
    """One token at a time, by the rule's own step, and several; decay needs no step of its own."""
    inputs, (beta, alpha) = with_unit_keys(qkv(9)), gates(9)
    gated = [beta, alpha] if fades else [beta]

    def in_parts(attend, cut, *gates, **options):
        state, outputs = None, []
        for part in zip(*(x.split(cut, dim=2) for x in (*inputs, *gates)), strict=True):
            output, state = attend(*part, state=state, **options)
            outputs.append(output)
        return torch.cat(outputs, dim=2), state

    for parts in (
        in_parts(gated_delta_rule_step, 1, *gated),
        in_parts(gated_delta_rule, 5, *gated, chunk=3),
    ):
        whole = gated_delta_rule(*inputs, *gated, chunk=4)
        assert_equal_in_values_and_gradients(parts, whole, [*inputs, *gated])
    assert_equal_in_values_and_gradients(
        in_parts(decayed_linear_attention, 5, alpha, chunk=3),
        decayed_linear_attention(*inputs, alpha, chunk=4),
        [*inputs, alpha],
    )


@pytest.mark.parametrize("ends", [[0.0, 0.4, 1.0, 0.0], [0.3, 0.0, 0.0, 1.0]])
def test_gradients_of_gates_at_their_ends(ends):
    """Also of gradients: products with factors of 0 and 1, alone and in pairs."""
    inputs = [x[:1, :1, :, :2].detach().requires_grad_() for x in with_unit_keys(qkv(4))]
    beta, alpha = (
        torch.tensor(x, dtype=torch.float64).view(1, 1, 4).requires_grad_()
        for x in (ends[::-1], ends)
    )

    def rule(*x):
        return gated_delta_rule(*x, chunk=3)

    assert torch.autograd.gradcheck(rule, (*inputs, beta, alpha))
    assert torch.autograd.gradgradcheck(rule, (*inputs, beta, alpha))


@pytest.mark.parametrize("decay", [1e-30, 0.01, 1.0])
def test_no_decay_overflows_however_fast_it_is(decay):
    """64 factors of 0.01 are 0 in float32, and a quotient of two such products is no number."""
    inputs = [x.detach().float() for x in with_unit_keys(qkv(150))]
    beta, _ = (x.detach().float() for x in gates(150))
    alpha = torch.full((1, 1, 1), decay).requires_grad_()
    exact = [x.double() for x in (*inputs, beta, alpha.detach())]
    output, _ = gated_delta_rule(*inputs, beta, alpha)
    torch.testing.assert_close(output.double(), in_a_loop(*exact)[0], rtol=0, atol=1e-5)
    output, state = decayed_linear_attention(*inputs, alpha)
    output.sum().backward()
    assert state.isfinite().all() and alpha.grad.isfinite().all()
    expected = in_a_loop(*exact[:3], None, exact[4])[0]
    torch.testing.assert_close(output.double(), expected, rtol=1e-5, atol=1e-4)


def test_in_float32_a_thousand_tokens_agree_to_1e_5():
    inputs = [x.detach().float() for x in with_unit_keys(qkv(1000, batch=1))]
    beta, alpha = (x.detach()[:1].float() for x in gates(1000))
    expected, _ = in_a_loop(*(x.double() for x in (*inputs, beta, alpha)))
    output, _ = gated_delta_rule(*inputs, beta, alpha)
    torch.testing.assert_close(output.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("attend", ["gated", "delta", "decay"])
def test_nothing_as_large_as_all_pairs_is_made_on_the_way_there_or_back(attend):
    """1,000 tokens: the largest tensor is as large as the inputs, with or without gradients."""
    inputs = [torch.randn(1, 1, 1000, 8, requires_grad=True) for _ in range(3)]
    beta, alpha = (x[:1, :1].detach().float().requires_grad_() for x in gates(1000))
    call = {
        "gated": lambda: gated_delta_rule(*inputs, beta / 8, alpha),
        "delta": lambda: gated_delta_rule(*inputs, beta / 8),
        "decay": lambda: decayed_linear_attention(*inputs, alpha),
    }[attend]
    with LargestTensor() as watch:
        call()[0].sum().backward()
    assert watch.numel <= 1000 * 8
    with LargestTensor() as watch, torch.no_grad():
        call()
    assert watch.numel <= 1000 * 8


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(dtype):
    """A sum of 3,000 ones: bfloat16 would stay at 256, float16 at 2,048."""
    x = torch.ones(1, 1, 3000, 1, dtype=dtype)
    one = torch.ones(1, 1, 1, dtype=dtype)
    output, state = decayed_linear_attention(x, x, x, one)
    assert (output.dtype, state.dtype) == (dtype, torch.float32)
    assert state.item() == 3000
    token = x[:, :, :1]
    output, after = gated_delta_rule_step(token, token, 2 * token, one, one, state)
    assert (output.dtype, after.dtype) == (dtype, torch.float32)
    assert output.item() == after.item() == 2
    output, after = gated_delta_rule(token, token, token, one / 1024, one, state=state)
    assert after.item() == pytest.approx(3000 - 2999 / 1024, abs=1e-3)


def a_module(**options):
    module = GatedDeltaNetAttention(8, 2, **options).double()
    randomise(module, torch.Generator().manual_seed(0))
    return module


MASK = padding_mask(torch.tensor([[3, 4, 5, 0, 0], [0, 7, 8, 9, 2]]), 0)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", [None, MASK])
def test_the_module_projects_around_a_loop(bias, mask):
    module, x = a_module(bias=bias), torch.randn(2, 5, 8).double().requires_grad_()
    q, k, v = (F.silu(split_heads(w(x), 2)) for w in (module.w_q, module.w_k, module.w_v))
    q, k = (y / (y.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt() for y in (q, k))
    # (batch, seq, heads) to (batch, heads, seq)
    beta = torch.sigmoid(module.w_beta(x)).permute(0, 2, 1)
    speed = torch.log(1 + torch.exp(module.w_alpha(x))) * torch.exp(module.log_rate)
    attended, _ = in_a_loop(q, k, v, beta, torch.exp(-speed).permute(0, 2, 1), mask)
    expected = module.w_o(merge_heads(attended))
    leaves = [x, *module.parameters()]
    assert_equal_in_values_and_gradients([module(x, mask)[0]], [expected], leaves)
    assert len(list(module.parameters())) == (6 + 6 if bias else 6 + 1) + 1


def test_a_fresh_module_keeps_most_of_its_state():
    """softplus(bias) from 0.001 to 0.1 and a rate from 1 to 16: e^-1.6 to e^-0.001 at x = 0."""
    torch.manual_seed(0)
    module = GatedDeltaNetAttention(500, 500)
    steps, rate = F.softplus(module.w_alpha.bias.detach()), module.log_rate.detach().exp()
    assert 0.001 <= steps.min() < 0.0015 and 0.097 < steps.max() <= 0.1
    assert steps.median().item() == pytest.approx(0.01, rel=0.2)
    assert 1 <= rate.min() < 1.5 and 15.5 < rate.max() <= 16


def test_a_token_of_zeros_has_a_gradient_of_bounded_size():
    module, x = a_module(bias=False), torch.zeros(1, 3, 8).double().requires_grad_()
    output, _ = module(x)
    assert not output.any()
    output.sum().backward()
    assert x.grad.isfinite().all() and x.grad.abs().max() < 1e4


X, ONE = torch.zeros(2, 3, 5, 4), torch.ones(1, 1, 1)
STATE = torch.zeros(2, 3, 4, 4)
REFUSED = {
    "a number as a gate": (
        lambda: gated_delta_rule(X, X, X, 0.5),
        TypeError,
        "beta must be a tensor, got float; for one number write torch.full((1, 1, 1), beta)",
    ),
    "a gate of other axes": (
        lambda: decayed_linear_attention(X, X, X, torch.ones(3)),
        ValueError,
        "alpha must have shape (batch, heads, seq) = (2, 3, 5), or size 1 on some of these axes, "
        "got (3,)",
    ),
    "several tokens in a step": (
        lambda: gated_delta_rule_step(X, X, X, ONE),
        ValueError,
        "a step takes one token, got 5 in query of shape (2, 3, 5, 4); gated_delta_rule takes "
        "several",
    ),
    "a state of another width": (
        lambda: gated_delta_rule(X, X, X[..., :2], ONE, state=STATE),
        ValueError,
        "state must be what the tokens before left, (batch, heads, d_key, d_value) = "
        "(2, 3, 4, 2), got (2, 3, 4, 4)",
    ),
    "a state of half precision": (
        lambda: decayed_linear_attention(*[X.half()] * 3, ONE.half(), state=STATE.half()),
        TypeError,
        "state must be what the tokens before left, torch.float32, got torch.float16",
    ),
}


test_bad_input_is_refused = refusals(REFUSED)


@pytest.mark.parametrize("delta", [True, False])
def test_whatever_stands_in_padding_leaves_the_state_and_the_others_alone(delta):
    """Not a number times a weight of 0 would not be 0."""
    (query, key, value), (beta, alpha) = qkv(7), gates(7)
    real = torch.tensor([0, 1, 1, 0, 1, 0, 0], dtype=torch.bool)
    mask = real[None, None, None]

    def attended(fill):
        inputs = [x.detach().clone() for x in (key, value, beta, alpha)]
        for x in inputs:
            x[:, :, ~real] = fill
        k, v, b, a = inputs
        if delta:
            return gated_delta_rule(query, k, v, b, a, mask, chunk=3)
        return decayed_linear_attention(query, k, v, a, mask, chunk=3)

    zeros = attended(0.0)
    for fill in (float("nan"), float("inf")):
        for found, expected in zip(attended(fill), zeros, strict=True):
            assert torch.equal(found, expected)
