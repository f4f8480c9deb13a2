"""Head scores on patterns made by hand, and against loops over every query and key."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attention.trained.head_scores import (
    aligned_score,
    duplicate_token_score,
    induction_score,
    previous_token_score,
)
from tests.unit.refusals import refusals

IDS = torch.tensor([[5, 7, 5, 5, 9, 7]])


def head(*keys):
    """One head in which each query looks at one key alone; (1, 1, query, key)."""
    return torch.nn.functional.one_hot(torch.tensor(keys), len(keys)).float()[None, None]


def scores(weights, token_ids=IDS):
    """The three scores of one head."""
    return [
        previous_token_score(weights).item(),
        duplicate_token_score(weights, token_ids).item(),
        induction_score(weights, token_ids).item(),
    ]


# Queries 2, 3 and 5 have tokens that have occurred: last at 0, 2 and 1, so that induction wants
# keys 1, 3 (the query itself) and 2.
@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ([0, 0, 1, 2, 3, 4], [1, 1 / 3, 1 / 3]),  # the token before
        ([0, 1, 0, 2, 4, 1], [1 / 5, 1, 0]),  # the same token
        ([0, 1, 1, 3, 4, 2], [1 / 5, 0, 1]),  # what came after it
        ([0, 1, 2, 3, 4, 5], [0, 0, 1 / 3]),  # itself
        ([0, 1, 0, 0, 4, 1], [0, 2 / 3, 0]),  # the first 5 is not the last one before query 3
        ([0, 1, 1, 1, 4, 2], [1 / 5, 0, 2 / 3]),  # nor is what came after it
    ],
)
def test_a_pattern_made_by_hand_has_its_score(keys, wanted):
    assert scores(head(*keys)) == pytest.approx(wanted)


def mean(weights_of_queries):
    return torch.stack(weights_of_queries).mean(0)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(2, 9), st.integers(1, 6))
def test_the_scores_are_those_of_a_loop(batch, heads, seq, vocab_size):
    weights = torch.rand(batch, heads, seq, seq).softmax(-1)
    ids = torch.randint(vocab_size, (batch, seq))
    ids[0, :2] = 0  # so that some token occurs twice
    previous, duplicate, induction = [], [], []
    for b in range(batch):
        for query in range(seq):
            if query > 0:
                previous.append(weights[b, :, query, query - 1])
            earlier = [key for key in range(query) if ids[b, key] == ids[b, query]]
            if earlier:
                duplicate.append(weights[b, :, query, earlier[-1]])
                induction.append(weights[b, :, query, earlier[-1] + 1])
    torch.testing.assert_close(previous_token_score(weights), mean(previous))
    torch.testing.assert_close(duplicate_token_score(weights, ids), mean(duplicate))
    torch.testing.assert_close(induction_score(weights, ids), mean(induction))


def test_several_keys_of_a_pattern_add_up_and_a_query_without_one_does_not_count():
    weights = torch.tensor([[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [[1, 0, 0], [0, 1, 0]]])[None]
    pattern = torch.tensor([[[True, False, True], [False, False, False]]])
    assert aligned_score(weights, pattern).tolist() == pytest.approx([0.7, 1.0])
    pattern[0, 1, 2] = True
    assert aligned_score(weights, pattern).tolist() == pytest.approx([0.75, 0.5])


def test_scores_have_the_gradient_of_their_mean():
    weights = torch.rand(1, 1, 6, 6, requires_grad=True)
    induction_score(weights, IDS).sum().backward()
    wanted = torch.zeros(6, 6)
    wanted[[2, 3, 5], [1, 3, 2]] = 1 / 3
    torch.testing.assert_close(weights.grad[0, 0], wanted)


WEIGHTS = torch.full((2, 3, 4, 4), 0.25)


test_bad_input = refusals(
    [
        (
            lambda: aligned_score(WEIGHTS, torch.ones(2, 4, 4)),
            TypeError,
            "pattern must be a boolean tensor, True = to be looked at, got torch.float32",
        ),
        (
            lambda: aligned_score(WEIGHTS, torch.ones(4, 4, dtype=torch.bool)),
            ValueError,
            "pattern must have shape (batch, query, key) = (2, 4, 4), "
            "as weights (2, 3, 4, 4) have, got (4, 4)",
        ),
        (
            lambda: aligned_score(WEIGHTS, torch.zeros(2, 4, 4, dtype=torch.bool)),
            ValueError,
            "pattern names no key for any query",
        ),
        (
            lambda: aligned_score(WEIGHTS[0], torch.ones(3, 4, 4, dtype=torch.bool)),
            ValueError,
            "weights must have shape (batch, heads, query, key), got 3 dimensions",
        ),
        (
            lambda: previous_token_score(WEIGHTS[..., :3]),
            ValueError,
            "weights must be those of self-attention, "
            "as many queries as keys, got 4 queries and 3 keys",
        ),
        (
            lambda: induction_score(WEIGHTS, torch.ones(2, 3, dtype=torch.int64)),
            ValueError,
            "token_ids must have shape (batch, key) = (2, 4), "
            "as weights (2, 3, 4, 4) have, got (2, 3)",
        ),
        (
            lambda: induction_score(WEIGHTS, torch.ones(2, 4)),
            TypeError,
            "token_ids must be int64",
        ),
    ]
)
