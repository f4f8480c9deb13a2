import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.window import sliding_window_mask, window_reach
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import in_a_loop


@given(st.integers(1, 9), st.integers(0, 12), st.booleans())
def test_a_window_holds_the_same_number_of_keys_on_both_sides_or_all_before(seq, window, causal):
    if causal:
        wanted = in_a_loop(seq, lambda query, key: 0 <= query - key <= window)
    else:
        window *= 2
        wanted = in_a_loop(seq, lambda query, key: abs(query - key) <= window / 2)
    assert torch.equal(sliding_window_mask(seq, window, causal=causal), wanted)
    assert sum(window_reach(window, causal=causal)) == window
    assert sliding_window_mask(3, 2, device="meta").is_meta


test_bad_input = refusals([(lambda: sliding_window_mask(4, 3), "window=3 is odd")])
