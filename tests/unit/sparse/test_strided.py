import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.strided import strided_attention, strided_mask
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import (
    EACH_QUERYS_OWN,
    assert_equals_dense,
    largest_piece,
    largest_tensor,
    paddings,
    qkv,
    zeros,
)


@given(st.integers(1, 14), st.integers(1, 16))
def test_the_mask_is_the_papers_two_sets(seq, stride):
    """A¹ = {max(0, i - l), …, i}, A² = {j ≤ i : (i - j) mod l = 0}."""
    for query, row in enumerate(strided_mask(seq, stride)):
        near = set(range(max(0, query - stride), query + 1))
        far = {key for key in range(query + 1) if (query - key) % stride == 0}
        assert set(row.nonzero().flatten().tolist()) == near | far


@given(st.integers(1, 20), st.integers(1, 22), st.sampled_from(list(paddings(1))))
def test_it_equals_dense_attention_under_its_mask(seq, stride, padding):
    assert_equals_dense(
        lambda *inputs: strided_attention(*inputs, stride=stride),
        strided_mask(seq, stride),
        qkv(seq),
        paddings(seq)[padding],
    )


def test_two_layers_connect_a_query_with_every_earlier_key():
    once = strided_mask(60, 8).long()
    assert torch.equal(once @ once > 0, torch.ones(60, 60).tril() > 0)


def test_no_tensor_of_query_times_key_numbers_is_made():
    """At stride ≈ √n a query has 2·stride near scores and n/stride far ones."""
    largest = largest_tensor(lambda *x: strided_attention(*x, stride=32), 1000)
    assert largest <= 1024 * 2 * 32


def test_without_gradients_no_tensor_outgrows_a_piece():
    """Keys and values with a row before them, (2, 1056, 2), are the largest; scores fit a piece."""
    largest = largest_piece(lambda *x: strided_attention(*x, stride=32), 1000, numbers=4100)
    assert largest <= 2 * 1056 * 2


test_bad_input = refusals(
    [
        (
            lambda: strided_attention(**zeros(stride=2, query=torch.zeros(1, 1, 5, 2))),
            "strided attention is self-attention",
        ),
        (
            lambda: strided_attention(**zeros(stride=2, mask=EACH_QUERYS_OWN)),
            "strided attention can leave out keys",
        ),
    ]
)
