import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.blocks import attend_in_blocks
from tests.unit.sparse.cases import assert_equals_dense, paddings, qkv


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
WRONG = {
    "too few blocks": (
        {"listed": LISTED[:2], "allowed": ALLOWED[:2]},
        ValueError,
        "2 blocks of 2 queries hold 4 of 6 queries; got listed (2, 1) and allowed (2, 2, 1), and 6 "
        "queries in blocks of 2 need 3 rows",
    ),
    "another number of blocks": (
        {"listed": LISTED[:2]},
        ValueError,
        "listed must have shape (blocks, n_keys) and allowed (blocks, block, n_keys), with the "
        "same blocks and n_keys; got listed (2, 1) and allowed (3, 2, 1)",
    ),
    "another number of keys": (
        {"listed": LISTED.expand(3, 2)},
        ValueError,
        "with the same blocks and n_keys; got listed (3, 2) and allowed (3, 2, 1)",
    ),
    "allowed for no block": (
        {"allowed": ALLOWED[0]},
        ValueError,
        "with the same blocks and n_keys; got listed (3, 1) and allowed (2, 1)",
    ),
    "a list": ({"listed": [[0]]}, TypeError, "listed must be a tensor, got list"),
    "positions as floats": (
        {"listed": LISTED.float()},
        TypeError,
        "listed must hold positions in int64, got torch.float32",
    ),
    "allowed as integers": (
        {"allowed": ALLOWED.int()},
        TypeError,
        "allowed must be boolean, True = may attend, got torch.int32",
    ),
    "a position after the last": (
        {"listed": LISTED + 1},
        ValueError,
        "listed has position 6, and the positions of 6 tokens go from 0 to 5; clamp what lies "
        "outside and do not allow it",
    ),
    "a position before the first": (
        {"listed": LISTED - 1},
        ValueError,
        "listed has position -1",
    ),
    "another number of keys than queries": (
        {"key": X[:, :, :5], "value": X[:, :, :5]},
        ValueError,
        "attention in blocks is self-attention: its pattern says how far a key lies from its query "
        "in one sequence; got 6 queries and 5 keys. Between two sequences use "
        "scaled_dot_product_attention",
    ),
    "a mask for each query": (
        {"mask": torch.ones(6, 6, dtype=torch.bool)},
        ValueError,
        "attention in blocks can leave out keys for all queries alike, not for single queries",
    ),
}


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("change", "error", "words"), WRONG.values(), ids=WRONG)
def test_bad_input(change, error, words):
    inputs = {"query": X, "key": X, "value": X, "listed": LISTED, "allowed": ALLOWED}
    with pytest.raises(error, match=re.escape(words)):
        attend_in_blocks(**(inputs | change))
