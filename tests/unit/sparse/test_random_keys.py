import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse.random_keys import draw_random_keys, random_mask
from tests.unit.sparse.cases import in_a_loop


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 10), st.booleans())
def test_the_queries_of_a_block_share_their_random_keys(seq, n_random, block, causal):
    keys = draw_random_keys(
        seq, n_random, block=block, causal=causal, generator=torch.Generator().manual_seed(seq)
    )
    assert keys.shape == (-(-seq // block), n_random)
    wanted = in_a_loop(
        seq, lambda query, key: key in keys[query // block] and (not causal or key <= query)
    )
    assert torch.equal(random_mask(seq, keys, block=block, causal=causal), wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_random_keys_are_drawn_evenly(causal):
    """20 000 draws for each block: a share of p is off by 4 · √(p(1-p)/20000) ≤ 0.015 at most."""
    rng = torch.Generator().manual_seed(0)
    keys = draw_random_keys(5, 20_000, block=2, causal=causal, generator=rng)
    for row, limit in zip(keys, (2, 4, 5) if causal else (5, 5, 5), strict=True):
        share = torch.bincount(row, minlength=5) / 20_000
        torch.testing.assert_close(
            share[:limit], torch.full((limit,), 1 / limit), atol=0.015, rtol=0
        )
        assert not share[limit:].any()


def test_a_generator_repeats_the_draw_and_spares_the_global_one():
    torch.manual_seed(3)
    first, second = (
        draw_random_keys(50, 4, block=5, generator=torch.Generator().manual_seed(1))
        for _ in range(2)
    )
    assert torch.equal(first, second)
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(1))


DRAWN = torch.tensor([[0, 5], [1, 1], [2, 0]])  # for 6 tokens in blocks of 2


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (DRAWN[:2], "2 rows, and 6 queries in blocks of 2 need 3"),
        (DRAWN[0], "must have shape (blocks, random), got (2,)"),
        (DRAWN + 1, "has position 6, and the positions of 6 tokens go from 0 to 5"),
        (DRAWN - 1, "has position -1"),
    ],
)
def test_other_random_keys_are_refused(change, words):
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        random_mask(6, change, block=2)
    assert "draw_random_keys(6, …, block=2) makes them" in str(caught.value)
