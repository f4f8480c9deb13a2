import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.global_tokens import global_mask
from attention.sparse.union import sparse_attention
from tests.unit.sparse.cases import in_a_loop


@given(st.integers(1, 9), st.sets(st.integers(0, 8)), st.booleans())
def test_a_global_token_sees_all_and_is_seen_by_all(seq, positions, causal):
    positions = {position for position in positions if position < seq}
    wanted = in_a_loop(
        seq,
        lambda query, key: {query, key} & positions and (not causal or key <= query),
    )
    assert torch.equal(global_mask(seq, [*positions, *positions], causal=causal), wanted)
    assert global_mask(3, [0], causal=causal, device="meta").is_meta


def test_positions_from_an_iterator_are_those_of_the_list():
    """It can be read once: the check would leave none for the computation."""
    q, k, v = torch.randn(3, 1, 2, 9, 4, generator=torch.Generator().manual_seed(0))
    listed = sparse_attention(q, k, v, window=2, global_tokens=[1, 5])
    assert torch.equal(sparse_attention(q, k, v, window=2, global_tokens=iter([1, 5])), listed)
    assert torch.equal(global_mask(9, iter([1, 5])), global_mask(9, [1, 5]))
