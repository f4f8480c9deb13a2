from hypothesis import given, settings
from hypothesis import strategies as st

from attention.sparse.strided import strided_attention, strided_mask
from tests.unit.sparse.cases import (
    assert_equals_dense,
    largest_piece,
    largest_tensor,
    paddings,
    qkv,
)


@given(st.integers(1, 14), st.integers(1, 16))
def test_the_mask_is_the_papers_two_sets(seq, stride):
    """A¹ = {max(0, i - l), …, i}, A² = {j ≤ i : (i - j) mod l = 0}."""
    for query, row in enumerate(strided_mask(seq, stride)):
        near = set(range(max(0, query - stride), query + 1))
        far = {key for key in range(query + 1) if (query - key) % stride == 0}
        assert set(row.nonzero().flatten().tolist()) == near | far


@settings(max_examples=40)
@given(st.integers(1, 20), st.integers(1, 22), st.sampled_from(list(paddings(1))))
def test_it_equals_dense_attention_under_its_mask(seq, stride, padding):
    assert_equals_dense(
        lambda *inputs: strided_attention(*inputs, stride=stride),
        strided_mask(seq, stride),
        qkv(seq),
        paddings(seq)[padding],
    )


def test_no_tensor_of_query_times_key_numbers_is_made():
    """At stride ≈ √n a query has 2·stride near scores and n/stride far ones.

    Without gradients scores fit a piece; keys and values with a row before them, (2, 1056, 2), are
    the largest.
    """

    def attend(*inputs):
        return strided_attention(*inputs, stride=32)

    assert largest_tensor(attend, 1000) <= 1024 * 2 * 32
    assert largest_piece(attend, 1000, numbers=4100) <= 2 * 1056 * 2
