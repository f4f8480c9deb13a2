import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention import merge_heads, split_heads

sizes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(1, 4))


def test_by_hand():
    x = torch.tensor([[[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]])  # (1, 3, 4)
    heads = split_heads(x, 2)
    assert heads.tolist() == [[[[1, 2], [5, 6], [9, 10]], [[3, 4], [7, 8], [11, 12]]]]
    assert merge_heads(heads).tolist() == x.tolist()


@given(sizes)
def test_every_entry_lands_where_it_belongs_and_comes_back(size):
    batch, seq, n_heads, d_key = size
    x = torch.randn(batch, seq, n_heads * d_key, requires_grad=True)
    heads = split_heads(x, n_heads)
    assert heads.shape == (batch, n_heads, seq, d_key)
    for h in range(n_heads):
        assert torch.equal(heads[:, h], x[:, :, h * d_key : (h + 1) * d_key])
    merged = merge_heads(heads)
    assert torch.equal(merged, x)
    assert torch.equal(merge_heads(heads.contiguous()), x)  # head by head in memory: it copies
    pull = torch.randn_like(x)
    assert torch.equal(torch.autograd.grad(merged, x, pull)[0], pull)


@pytest.mark.parametrize("layout", ["contiguous", "sliced", "transposed"])
def test_split_is_a_view(layout):
    x = {
        "contiguous": torch.randn(2, 5, 8),
        "sliced": torch.randn(2, 5, 24)[..., 8:16],
        "transposed": torch.randn(8, 5, 2).transpose(0, 2),
    }[layout]
    heads = split_heads(x, 4)
    assert heads.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    batch, seq, column = x.stride()
    assert heads.stride() == (batch, 2 * column, seq, column)
    assert torch.equal(heads[1, 3, 2], x[1, 2, 6:8])


def test_merging_what_was_split_copies_nothing():
    x = torch.randn(2, 5, 8)
    assert merge_heads(split_heads(x, 4)).data_ptr() == x.data_ptr()
