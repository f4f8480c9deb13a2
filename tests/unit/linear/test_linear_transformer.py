import pytest
import torch

from attention.linear.linear_transformer import (
    elu_plus_one,
    linear_attention,
    linear_attention_step,
)
from tests.unit.cases import assert_close, assert_gradients_close
from tests.unit.sparse.cases import paddings, qkv


def in_a_double_loop(query, key, value, keeps, causal):
    """φ = elu + 1 written out, one query and one key at a time."""

    def phi(x):
        return torch.where(x > 0, x + 1, x.exp())

    rows = []
    for i in range(query.shape[2]):
        total, summed = 0.0, torch.zeros_like(value[:, :, 0])
        for j in range(key.shape[2]):
            weight = (phi(query[:, :, i]) * phi(key[:, :, j])).sum(-1, keepdim=True)
            weight = weight * keeps[..., j] * (not causal or j <= i)
            total, summed = total + weight, summed + weight * value[:, :, j]
        rows.append(summed / torch.where(total == 0, 1.0, total))
    return torch.stack(rows, dim=2)


def token_by_token(inputs):
    state, outputs = None, []
    for token in zip(*(x.split(1, dim=2) for x in inputs), strict=True):
        output, state = linear_attention_step(*token, state)
        outputs.append(output)
    return torch.cat(outputs, dim=2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", list(paddings(1)))
@pytest.mark.parametrize(("seq", "chunk"), [(1, 128), (7, 3), (7, 7), (7, 128)])
def test_it_equals_a_double_loop(seq, chunk, padding, causal):
    inputs, padding = qkv(seq), paddings(seq)[padding]
    keeps = torch.ones(2, 2, 1, seq) * (1 if padding is None else padding)
    outputs = [linear_attention(*inputs, padding, causal=causal, chunk=chunk)]
    if causal and padding is None:
        outputs.append(token_by_token(inputs))
    for output in outputs:
        expected = in_a_double_loop(*inputs, keeps, causal)
        assert_close(output, expected)
        assert_gradients_close(output, expected, inputs)
        if padding is not None and not padding.any():
            assert not output.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_feature_far_below_zero_keeps_its_digits(dtype):
    """elu(x) and 1, added one after the other, leave 0, and a query of such features nothing."""
    x = torch.tensor([-9.0, -1.0, 0.0, 2.0])
    exact = torch.where(x > 0, x + 1, x.double().exp())
    actual = elu_plus_one(x.to(dtype)).double()
    torch.testing.assert_close(actual, exact, rtol=torch.finfo(dtype).eps, atol=0)
    assert (actual > 0).all()
    query, value = torch.full((1, 1, 3, 2), -20.0), torch.randn(1, 1, 3, 4)
    mean = value.mean(2, keepdim=True).expand_as(value)
    torch.testing.assert_close(linear_attention(query, query, value), mean)


def test_in_float32_the_three_agree_to_1e_5():
    """At a length where the state has gathered many tokens."""
    inputs = [x.detach().float() for x in qkv(500)]
    query, key = (elu_plus_one(x.double()) for x in inputs[:2])
    weights = (query @ key.transpose(-2, -1)).tril()
    exact = weights / weights.sum(-1, keepdim=True) @ inputs[2].double()
    for output in (token_by_token(inputs), linear_attention(*inputs, causal=True)):
        torch.testing.assert_close(output.double(), exact, rtol=0, atol=1e-5)
