import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.linear.linear_transformer import (
    elu_plus_one,
    linear_attention,
    linear_attention_step,
)
from attention.linear.performer import performer_attention
from attention.linear.random_features import random_feature_attention
from tests.unit.cases import assert_close, gradients
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
    ours, theirs = gradients([output], inputs), gradients([expected], inputs)
    for actual, wanted in zip(ours, theirs, strict=True):
        assert_close(actual, wanted)
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
    ours, theirs = gradients([output], inputs), gradients([together], inputs)
    for actual, wanted in zip(ours, theirs, strict=True):
        assert_close(actual, wanted)


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
    "linear attention": linear_attention,
    "Performer": lambda *inputs, **how: performer_attention(
        *inputs[:3], PROJECTION, *inputs[3:], **how
    ),
    "Random Feature Attention": lambda *inputs, **how: random_feature_attention(
        *inputs[:3], PROJECTION, *inputs[3:], **how
    ),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", MECHANISMS)
def test_bad_input_is_told(name):
    attend = MECHANISMS[name]
    with pytest.raises(ValueError, match="one query for each key, got 5 queries and 6 keys"):
        attend(X[:, :, :5], X, X, causal=True)
    with pytest.raises(ValueError) as caught:
        attend(X, X, X, torch.ones(6, 6, dtype=torch.bool))
    told = str(caught.value)
    assert told.startswith(f"{name}, which hides the future with causal=True alone, can leave out")
    assert "mask must have size 1 on its query axis" in told
    with pytest.raises(TypeError, match="mask must be boolean"):
        attend(X, X, X, torch.ones(1, 1, 1, 6))
    with pytest.raises(ValueError, match="query must have shape"):
        attend(X[0], X, X)


@pytest.mark.usefixtures("as_a_reader")
def test_a_chunk_holds_a_token():
    with pytest.raises(ValueError, match="chunk must be at least 1, got 0"):
        linear_attention(X, X, X, chunk=0)


@pytest.mark.usefixtures("as_a_reader")
def test_a_state_of_another_batch_is_refused():
    token = torch.randn(2, 3, 1, 4)
    _, state = linear_attention_step(token[:1], token[:1], token[:1])
    with pytest.raises(ValueError, match=r"state.*\(2, 3, 4, 5\).*got \(1, 3, 4, 5\)"):
        linear_attention_step(token, token, token, state)
