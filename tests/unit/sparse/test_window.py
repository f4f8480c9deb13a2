import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.global_tokens import global_mask
from attention.sparse.window import sliding_window_mask, window_reach
from tests.unit.sparse.cases import in_a_loop


@given(st.integers(1, 9), st.integers(0, 12), st.booleans())
def test_a_window_holds_the_same_number_of_keys_on_both_sides_or_all_before(seq, window, causal):
    if causal:
        wanted = in_a_loop(seq, lambda query, key: 0 <= query - key <= window)
    else:
        window *= 2
        wanted = in_a_loop(seq, lambda query, key: abs(query - key) <= window / 2)
    assert torch.equal(sliding_window_mask(seq, window, causal=causal), wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_a_query_in_the_middle_sees_window_keys_and_itself(causal):
    assert sliding_window_mask(100, 8, causal=causal)[50].sum() == 9
    assert sum(window_reach(8, causal=causal)) == 8


@given(st.integers(1, 9), st.sets(st.integers(0, 8)), st.booleans())
def test_a_global_token_sees_all_and_is_seen_by_all(seq, positions, causal):
    positions = {position for position in positions if position < seq}
    wanted = in_a_loop(
        seq,
        lambda query, key: {query, key} & positions and (not causal or key <= query),
    )
    assert torch.equal(global_mask(seq, [*positions, *positions], causal=causal), wanted)


def test_masks_are_made_where_they_are_wanted():
    assert sliding_window_mask(3, 2, device="meta").is_meta
    assert global_mask(3, [0], causal=True, device="meta").is_meta


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sliding_window_mask(4, 3), ValueError, "window=3 is odd"),
        (lambda: sliding_window_mask(4, -2), ValueError, "window must be at least 0, got -2"),
        (lambda: sliding_window_mask(4, 2.0), TypeError, "window must be an int, got 2.0"),
        (lambda: sliding_window_mask(0, 2), ValueError, "seq must be at least 1, got 0"),
        (lambda: global_mask(4, [4]), ValueError, "position 4, and 4 tokens end at 3"),
        (lambda: global_mask(4, [-1]), ValueError, "must be at least 0, got -1"),
        (lambda: global_mask(4, [0.0]), TypeError, "must be an int, got 0.0"),
    ],
)
def test_bad_input_is_told(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
