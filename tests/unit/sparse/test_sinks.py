import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.sinks import sink_mask
from tests.unit.sparse.cases import in_a_loop


@given(st.integers(1, 9), st.integers(0, 10), st.integers(0, 10))
def test_a_query_sees_its_window_and_the_first_tokens(seq, window, n_sinks):
    """What `sparse_attention` computes with it is in test_union.py: a window and global tokens."""
    wanted = in_a_loop(
        seq, lambda query, key: key <= query and (query - key <= window or key < n_sinks)
    )
    assert torch.equal(sink_mask(seq, window, n_sinks), wanted)
    assert sink_mask(3, 1, 1, device="meta").is_meta
