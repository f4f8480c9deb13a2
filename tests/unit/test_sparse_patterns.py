import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.sparse_patterns import (
    draw_random_keys,
    global_mask,
    random_mask,
    sliding_window_mask,
    window_reach,
)


def in_a_loop(seq, sees):
    return torch.tensor([[bool(sees(query, key)) for key in range(seq)] for query in range(seq)])


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
        (lambda: draw_random_keys(4, 0, block=1), ValueError, "n_random must be at least 1"),
        (lambda: draw_random_keys(4, 1, block=0), ValueError, "block must be at least 1"),
    ],
)
def test_bad_input_is_told(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
