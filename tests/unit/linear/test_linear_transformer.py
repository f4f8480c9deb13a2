import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.linear.feature_maps import kernel_attention
from attention.linear.linear_transformer import (
    elu_plus_one,
    linear_attention,
    linear_attention_step,
)
from attention.linear.performer import performer_attention
from attention.linear.random_features import random_feature_attention
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


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", list(paddings(1)))
@pytest.mark.parametrize(("seq", "chunk"), [(1, 128), (7, 3), (7, 7), (7, 128)])
def test_it_equals_a_double_loop(seq, chunk, padding, causal):
    inputs, padding = qkv(seq), paddings(seq)[padding]
    keeps = torch.ones(2, 2, 1, seq) * (1 if padding is None else padding)
    output = linear_attention(*inputs, padding, causal=causal, chunk=chunk)
    expected = in_a_double_loop(*inputs, keeps, causal)
    assert_close(output, expected)
    assert_gradients_close(output, expected, inputs)
    if padding is not None and not padding.any():
        assert not output.any()


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(1, 14))
def test_token_by_token_equals_chunk_by_chunk(seq, chunk):
    inputs = qkv(seq, seed=chunk)
    state, outputs = None, []
    for token in zip(*(x.split(1, dim=2) for x in inputs), strict=True):
        output, state = linear_attention_step(*token, state)
        outputs.append(output)
    output, together = (
        torch.cat(outputs, dim=2),
        linear_attention(*inputs, causal=True, chunk=chunk),
    )
    assert_close(output, together)
    assert_gradients_close(output, together, inputs)


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


def test_a_step_leaves_its_state_alone():
    token = torch.randn(1, 2, 1, 3)
    _, state = linear_attention_step(token, token, token)
    before = state.clone()
    linear_attention_step(token, token, token, state)
    assert torch.equal(state, before)


def test_in_float32_the_three_agree_to_1e_5():
    """At a length where the state has gathered many tokens."""
    inputs = [x.detach().float() for x in qkv(500)]
    state, outputs = None, []
    for token in zip(*(x.split(1, dim=2) for x in inputs), strict=True):
        output, state = linear_attention_step(*token, state)
        outputs.append(output)
    query, key = (elu_plus_one(x.double()) for x in inputs[:2])
    weights = (query @ key.transpose(-2, -1)).tril()
    exact = weights / weights.sum(-1, keepdim=True) @ inputs[2].double()
    for output in (torch.cat(outputs, dim=2), linear_attention(*inputs, causal=True)):
        torch.testing.assert_close(output.double(), exact, rtol=0, atol=1e-5)


def test_a_late_token_changes_no_earlier_output():
    query, key, value = (x.detach() for x in qkv(9))
    before = linear_attention(query, key, value, causal=True, chunk=4)
    for x in (query, key, value):
        x[:, :, 6] += 1.0
    after = linear_attention(query, key, value, causal=True, chunk=4)
    assert torch.equal(before[:, :, :6], after[:, :, :6])
    assert (before[:, :, 6:] != after[:, :, 6:]).any(-1).all()


X, PROJECTION = torch.randn(1, 1, 6, 2), torch.randn(4, 2)
MECHANISMS = {
    "kernel_attention": kernel_attention,
    "linear attention": linear_attention,
    "Performer": lambda query, key, value, *mask: performer_attention(
        query, key, value, PROJECTION, *mask
    ),
    "Random Feature Attention": lambda query, key, value, *mask: random_feature_attention(
        query, key, value, PROJECTION, *mask
    ),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mask_for_single_queries_is_refused(name):
    says = f"^{name}, which hides the future with causal=True alone, can leave out keys for all"
    with pytest.raises(ValueError, match=says):
        MECHANISMS[name](X, X, X, torch.ones(6, 6, dtype=torch.bool))


@pytest.mark.usefixtures("as_a_reader")
def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="one query for each key, got 5 queries and 6 keys"):
        linear_attention(X[:, :, :5], X, X, causal=True)
    with pytest.raises(ValueError, match="last axis of key must be d_key=2, got 1"):
        linear_attention(X, X[..., :1], X)
    for attend in (linear_attention, kernel_attention):
        with pytest.raises(ValueError, match="chunk must be at least 1, got 0"):
            attend(X, X, X, chunk=0)


@pytest.mark.usefixtures("as_a_reader")
def test_a_step_refuses_bad_input():
    token = torch.randn(2, 3, 1, 4)
    with pytest.raises(ValueError, match="last axis of key must be d_key=4, got 3"):
        linear_attention_step(token, token[..., :3], token)
    _, state = linear_attention_step(token[:1], token[:1], token[:1])
    with pytest.raises(ValueError, match=r"state.*\(2, 3, 4, 5\).*got \(1, 3, 4, 5\)"):
        linear_attention_step(token, token, token, state)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_state_is_kept_in_float32(dtype):
    x = torch.ones(1, 1, 1, 2, dtype=dtype)
    state = torch.full((1, 1, 2, 3), 4096.0)
    output, after = linear_attention_step(x, x, x, state)
    assert output.dtype == dtype
    assert after.flatten().tolist() == [4098.0] * 6  # bfloat16 would stay at 4096
