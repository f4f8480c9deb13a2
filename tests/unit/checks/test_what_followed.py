"""check_what_followed: other right ways pass, and what learners write is named."""

import pytest
import torch

from attention import checks
from attention.checks import check_what_followed
from attention.checks.what_followed import TASK
from attention.trained.head_scores import induction_score

pytestmark = pytest.mark.usefixtures("as_a_reader")


def by_loops(weights, token_ids, *, key=1, first=False, every=False, itself=False, start=0):
    """What a learner writes, with a place for each mistake."""
    rows = []
    for b, ids in enumerate(token_ids.tolist()):
        for i in range(len(ids)):
            before = [j for j in range(start, i + itself) if ids[j] == ids[i]]
            if before:
                j = before[0] if first else before[-1]
                if j + key < len(ids):
                    rows.append(weights[b, :, i, j + key])
            elif every:
                rows.append(torch.zeros(weights.shape[1]))
    return torch.stack(rows).mean(0)


def by_a_dictionary(weights, token_ids):
    total, count = torch.zeros(weights.shape[1]), 0
    for b, ids in enumerate(token_ids.tolist()):
        seen = {}
        for i, token in enumerate(ids):
            if token in seen:
                total, count = total + weights[b, :, i, seen[token] + 1], count + 1
            seen[token] = i
    return total / count


RIGHT = {"loops": by_loops, "dictionary": by_a_dictionary, "the book's": induction_score}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_right_way_passes(name, seed):
    result = check_what_followed(RIGHT[name], seed=seed)
    assert result.passed, result


@pytest.mark.parametrize(
    ("mistake", "name"),
    [
        ({"key": 0}, "same_token"),
        ({"key": -1}, "what_came_before"),
        ({"key": 2}, "one_too_far"),
        ({"first": True}, "first_occurrence"),
        ({"every": True}, "over_all_queries"),
        ({"start": 1}, "place_0_left_out"),
    ],
)
def test_a_learners_loop_is_named(mistake, name):
    def function(weights, token_ids):
        return by_loops(weights, token_ids, **mistake)

    assert check_what_followed(function).mistakes == (name,)


def test_a_head_that_counts_itself_looks_at_nothing():
    """Its next place is in the future: 0 for every head, which the message tells in numbers."""
    result = check_what_followed(lambda w, ids: by_loops(w, ids, itself=True))
    assert not result.passed
    assert "yours 0.00" in " ".join(result.paragraphs)


@pytest.mark.parametrize("seed", range(20))
def test_the_cases_have_what_tells_mistakes_apart(seed):
    """Tokens that come once, twice and more often, and queries with nothing to look up."""
    for case in TASK.cases(checks.inputs.Numbers(seed)):
        weights, ids = case.inputs.values()
        counts = [row.tolist().count(token) for row in ids for token in row.tolist()]
        assert {1, 2}.issubset(counts) and max(counts) > 2
        assert weights.triu(1).sum() == 0
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
