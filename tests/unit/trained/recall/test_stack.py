"""The stacks of the fair comparison: each rule token by token, what a layer sees, what it keeps."""

import pytest
import torch
from torch.nn import functional as F

from attention import GatedDeltaNetAttention
from attention.trained.fitting import build
from attention.trained.recall import cache_size, draw_pairs
from attention.trained.recall.stack import (
    LAYERS,
    RULES,
    ShortConvolution,
    Stack,
    StateAttention,
    TokensApart,
    make_layer,
    numbers_kept,
)


def rows(d_model=32):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, 70, d_model, generator=generator).double().requires_grad_()


def token_by_token(layer, rule, x):
    """In the words of the formula, head by head; 70 tokens are more than a chunk."""
    corrects, fades = RULES[rule]
    outputs = 0
    for head in range(2):
        part = slice(16 * head, 16 * head + 16)
        q, k, v = (F.silu(x @ w.weight[part].T) for w in (layer.w_q, layer.w_k, layer.w_v))
        q, k = (y / (y.square().sum(-1, keepdim=True) + 1e-6).sqrt() for y in (q, k))
        state, read = x.new_zeros(2, 16, 16), []
        for t in range(x.shape[1]):
            key, value, token = k[:, t, :, None], v[:, t, None], x[:, t]
            if fades:
                speed = F.softplus(token @ layer.w_alpha.weight[head] + layer.w_alpha.bias[head])
                state = (-speed).exp()[:, None, None] * state
            if corrects:
                beta = token @ layer.w_beta.weight[head] + layer.w_beta.bias[head]
                value = beta.sigmoid()[:, None, None] * (value - key.mT @ state)
            state = state + key @ value
            read.append((q[:, t, None] @ state)[:, 0])
        outputs = outputs + torch.stack(read, 1) @ layer.w_o.weight[:, part].T
    return outputs


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_its_formula_in_values_and_gradients(rule):
    layer = build(lambda: StateAttention(rule, 32)).double()
    x = rows()
    leaves = [x, *layer.parameters()]
    results = []
    for output in (layer(x)[0], token_by_token(layer, rule, x)):
        results.append((output, *torch.autograd.grad(output.square().sum(), leaves)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_the_gated_delta_rule_is_the_books_layer_with_a_rate_of_1():
    layer = build(lambda: StateAttention("gated delta rule", 32)).double()
    books = GatedDeltaNetAttention(32, 2, bias=False).double()
    state = {**layer.state_dict(), "log_rate": torch.zeros(2)}
    beta_bias = state.pop("w_beta.bias")
    books.load_state_dict(state)
    books.w_beta.bias = torch.nn.Parameter(beta_bias)
    x = rows()
    torch.testing.assert_close(layer(x)[0], books(x)[0])


def test_a_convolution_starts_as_nothing_and_sums_four_rows():
    convolution, x = ShortConvolution(32).double(), rows()
    torch.testing.assert_close(convolution(x), x)
    torch.nn.init.normal_(convolution.weight)
    padded = torch.cat((torch.zeros(2, 3, 32), x), dim=1)
    by_hand = sum(convolution.weight[:, 0, i] * padded[:, i : i + 70] for i in range(4))
    torch.testing.assert_close(convolution(x), by_hand)


@pytest.mark.parametrize("name", LAYERS)
def test_no_layer_sees_the_future_and_all_see_the_past(name):
    stack = build(lambda: Stack([name] * 2, d_model=16, convolution=True)).double()
    for convolution in stack.convolutions:
        torch.nn.init.normal_(convolution.weight)
    x = rows(16)
    change, _ = stack(x)
    [grad] = torch.autograd.grad(change[0, 40].sum(), x)
    assert (grad[0, 41:] == 0).all() and (grad[0, :41] != 0).any(1).all() and (grad[1] == 0).all()


def test_a_stack_adds_layer_upon_layer():
    stack, x = build(lambda: Stack(["sum", "softmax"])).double(), rows()
    below = x
    for norm, layer in zip(stack.norms, stack.layers, strict=True):
        below = below + layer(norm(below))[0]
    torch.testing.assert_close(stack(x)[0], below - x)


@pytest.mark.parametrize("rule", RULES)
def test_layers_have_as_many_parameters_but_for_their_gates(rule):
    gates = sum(RULES[rule]) * (32 * 2 + 2)
    counts = [sum(p.numel() for p in make_layer(n, 32).parameters()) for n in (rule, "softmax")]
    assert counts[0] - counts[1] == gates


def test_key_and_value_come_one_after_the_other():
    model = build(lambda: TokensApart(Stack(["softmax"])))
    pairs = draw_pairs(3, 9, 2, torch.Generator().manual_seed(0))
    x = model.embed(pairs.keys, pairs.values, pairs.asked)
    assert x.shape == (3, 20, 32)
    torch.testing.assert_close(x[:, 0:18:2], model.key(pairs.keys))
    torch.testing.assert_close(x[:, 1:18:2], model.value(pairs.values))
    torch.testing.assert_close(x[:, 18:], model.key(pairs.asked))
    assert model(*pairs[:3]).shape == (3, 2, 16)


@pytest.mark.parametrize(
    ("name", "same"), [("softmax", "softmax"), ("linear", "linear"), ("delta rule", "delta rule")]
)
def test_a_layer_keeps_what_that_of_the_other_table_keeps(name, same):
    for n in (4, 64):
        assert numbers_kept([name], n) == cache_size(same, n)
        assert numbers_kept([name, "sum"], n, convolution=True) == cache_size(same, n) + 512 + 192
