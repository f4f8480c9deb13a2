import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import causal_mask
from attention.linear.feature_maps import kernel_attention
from tests.unit.cases import assert_close, assert_gradients_close
from tests.unit.sparse.cases import LargestTensor, paddings


def quadratic_form(query, key, value, mask):
    """The same sums from the matrix of all weights, masked."""
    weights = torch.einsum("bhqf,bhkf->bhqk", query, key) * mask
    total = weights.sum(-1, keepdim=True)
    return torch.einsum("bhqk,bhkd->bhqd", weights / torch.where(total == 0, 1.0, total), value)


def positive(seq, n_keys=None, *, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return [
        torch.rand(2, 2, length, width, dtype=torch.float64, generator=rng).requires_grad_()
        for length, width in ((seq, 3), (n_keys or seq, 3), (n_keys or seq, 4))
    ]


@settings(max_examples=30)
@given(
    st.integers(1, 14), st.integers(1, 14), st.integers(1, 16), st.sampled_from(list(paddings(1)))
)
def test_it_equals_the_quadratic_form(n_queries, n_keys, chunk, padding):
    padding = paddings(n_keys)[padding]
    for causal in (False, True):
        inputs = positive(n_keys if causal else n_queries, n_keys)
        before = [x.detach().clone() for x in inputs]
        output = kernel_attention(*inputs, padding, causal=causal, chunk=chunk)
        mask = causal_mask(n_keys) if causal else torch.ones(1, n_keys)
        expected = quadratic_form(*inputs, mask if padding is None else mask * padding)
        assert_close(output, expected)
        assert_gradients_close(output, expected, inputs)
        assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True))


@pytest.mark.parametrize("causal", [False, True])
def test_the_normaliser_is_held_up(causal):
    """Weights -1, then 0.5: of their sums -1, -0.5, 0, 0.5 the first three become 0.1 · seen."""
    query, value = torch.ones(1, 1, 4, 1), torch.tensor([1.0, 2, 4, 8]).view(1, 1, 4, 1)
    key = torch.tensor([-1.0, 0.5, 0.5, 0.5]).view(1, 1, 4, 1)
    output = kernel_attention(query, key, value, causal=causal, chunk=2, least=0.1).flatten()
    sums = torch.tensor([-1.0, 0, 2, 6])
    totals = torch.tensor([0.1, 0.2, 0.3, 0.5])
    assert_close(output, sums / totals if causal else (sums / totals)[-1].expand(4))


@pytest.mark.parametrize("causal", [False, True])
def test_no_tensor_grows_faster_than_the_input(causal):
    """1000 queries and keys: nothing is larger than the output, not even on the way back."""
    inputs = [torch.rand(1, 1, 1000, 4, requires_grad=True) for _ in range(3)]
    with LargestTensor() as watch:
        kernel_attention(*inputs, causal=causal, chunk=32).sum().backward()
    assert watch.numel <= 1000 * 4
