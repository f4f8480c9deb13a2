from hypothesis import given, settings
from hypothesis import strategies as st

from attention.sparse.fixed import fixed_attention, fixed_mask
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import (
    assert_equals_dense,
    largest_tensor,
    paddings,
    qkv,
    zeros,
)


@given(st.integers(1, 14), st.integers(1, 16), st.data())
def test_the_mask_is_the_papers_two_sets(seq, stride, data):
    """A¹ = {j : ⌊j/l⌋ = ⌊i/l⌋}, A² = {j : j mod l ≥ l - c}, both of j ≤ i."""
    summary = data.draw(st.integers(1, stride))
    for query, row in enumerate(fixed_mask(seq, stride, summary)):
        own = {key for key in range(query + 1) if key // stride == query // stride}
        sums = {key for key in range(query + 1) if key % stride in range(stride - summary, stride)}
        assert set(row.nonzero().flatten().tolist()) == own | sums


@settings(max_examples=40)
@given(st.integers(1, 20), st.integers(1, 22), st.sampled_from(list(paddings(1))), st.data())
def test_it_equals_dense_attention_under_its_mask(seq, stride, padding, data):
    summary = data.draw(st.integers(1, stride))
    assert_equals_dense(
        lambda *inputs: fixed_attention(*inputs, stride=stride, summary=summary),
        fixed_mask(seq, stride, summary),
        qkv(seq),
        paddings(seq)[padding],
    )


def test_no_tensor_of_query_times_key_numbers_is_made():
    """At stride ≈ √n a query lists stride + summary·n/stride keys."""
    largest = largest_tensor(lambda *x: fixed_attention(*x, stride=16, summary=2), 256)
    assert largest <= 256 * (16 + 2 * 16)


test_bad_input = refusals(
    [
        (
            lambda: fixed_attention(**zeros(stride=2, summary=3)),
            "summary=3 keys do not fit in a row of stride=2 keys",
        ),
    ]
)
