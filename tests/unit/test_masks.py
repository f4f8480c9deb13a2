import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention import causal_mask, padding_mask
from attention.masks import with_causal


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_padding_mask_is_true_where_there_is_a_token(dtype):
    ids = torch.tensor([[5, 2, 0, 0], [0, 3, 4, 1]], dtype=dtype)
    mask = padding_mask(ids, 0)
    assert mask.shape == (2, 1, 1, 4)
    assert mask[:, 0, 0].tolist() == [[True, True, False, False], [False, True, True, True]]
    assert padding_mask(ids, 3)[1, 0, 0].tolist() == [True, False, True, True]


@given(st.integers(1, 8), st.integers(1, 8))
def test_the_last_query_is_aligned_with_the_last_key(n_queries, n_keys):
    mask = causal_mask(n_queries, n_keys)
    assert mask.dtype == torch.bool
    longest = max(n_queries, n_keys)
    whole = torch.ones(longest, longest, dtype=torch.bool).tril()
    assert torch.equal(mask, whole[longest - n_queries :, longest - n_keys :])


def test_the_device_is_the_callers():
    assert causal_mask(3, device="meta").device.type == "meta"
    assert causal_mask(3).device.type == "cpu"


def test_what_is_hidden_besides_the_future():
    query, key = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 3, 4)
    assert torch.equal(with_causal(None, query, key), causal_mask(2, 3))
    padding = torch.tensor([[[[False, True, True]]]])
    expected = [[[[False, True, False], [False, True, True]]]]
    assert with_causal(padding, query, key).tolist() == expected
