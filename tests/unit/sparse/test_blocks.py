import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.sparse.blocks import attend_in_blocks
from tests.unit.refusals import refusals
from tests.unit.sparse.cases import assert_equals_dense, paddings, qkv


@settings(max_examples=40)
@given(st.integers(1, 14), st.integers(1, 16), st.sampled_from(list(paddings(1))), st.data())
def test_it_equals_dense_attention_under_the_mask_of_what_is_listed(seq, block, padding, data):
    """Every block lists keys of its own; blocks that no query fills do no harm."""
    rng = torch.Generator().manual_seed(data.draw(st.integers(0, 2**32)))
    blocks = -(-seq // block) + data.draw(st.integers(0, 1))
    n_keys = data.draw(st.integers(1, seq))
    listed = torch.rand(blocks, seq, generator=rng).argsort(dim=-1)[:, :n_keys]
    allowed = torch.rand(blocks, block, n_keys, generator=rng) < 0.7
    pattern = torch.zeros(blocks, block, seq, dtype=torch.bool)
    pattern.scatter_(2, listed[:, None].expand(-1, block, -1), allowed)
    assert_equals_dense(
        lambda query, key, value, mask: attend_in_blocks(query, key, value, listed, allowed, mask),
        pattern.flatten(0, 1)[:seq],
        qkv(seq),
        paddings(seq)[padding],
    )


X, LISTED = torch.zeros(1, 1, 6, 2), torch.tensor([[0], [1], [5]])
ALLOWED = torch.ones(3, 2, 1, dtype=torch.bool)


def attend(listed, allowed=ALLOWED):
    return attend_in_blocks(X, X, X, listed, allowed)


test_bad_input = refusals(
    [
        (
            lambda: attend(LISTED[:2], ALLOWED[:2]),
            "2 blocks of 2 queries hold 4 of 6 queries; got listed (2, 1) and allowed (2, 2, 1), "
            "and 6 queries in blocks of 2 need 3 rows",
        ),
        (
            lambda: attend(LISTED[:2]),
            "listed must have shape (blocks, n_keys) and allowed (blocks, block, n_keys), with the "
            "same blocks and n_keys; got listed (2, 1) and allowed (3, 2, 1)",
        ),
        (
            lambda: attend(LISTED + 1),
            "listed has position 6, and the positions of 6 tokens go from 0 to 5; clamp what lies "
            "outside and do not allow it",
        ),
        (lambda: attend(LISTED - 1), "listed has position -1"),
    ]
)
