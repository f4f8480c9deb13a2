"""The check of the second exercise of chapter 2, which looks at the weights instead of numbers."""

import re

import pytest
import torch

from attention import SinusoidalPositionalEncoding, checks
from attention.checks import look_back
from attention.checks.look_back import BANK, LEAST, TASK, attended, check_look_back, looks

pytestmark = pytest.mark.usefixtures("as_a_reader")


def blocks(d_model, sign=1, angles=None):
    """The rotation as a learner writes it, with loops."""
    w = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        angle = torch.tensor(sign / 10000 ** (i / d_model) if angles is None else angles)
        w[i, i] = w[i + 1, i + 1] = angle.cos()
        w[i, i + 1], w[i + 1, i] = angle.sin(), -angle.sin()
    return w


def test_the_bank_holds_eight_mistakes_with_names_of_their_own():
    names = [mistake.name for mistake in BANK]
    assert len(set(names)) == len(names) >= 8


@pytest.mark.parametrize("mistake", BANK, ids=lambda mistake: mistake.name)
def test_a_mistake_fails_and_is_named(mistake):
    results = [check_look_back(mistake.function, seed=seed) for seed in (0, 1, 2, 0)]
    for result in results:
        assert not result.passed
        assert result.mistakes == (mistake.name,)
        message = " ".join(result.paragraphs)
        assert mistake.why in message
        assert mistake.way_out in message
        assert [m for m in BANK if m is not mistake and m.why in message] == []
    text = repr(results[0])
    assert text == repr(results[3]), "the same every time"
    assert text.startswith("check_look_back: not yet.\n")
    assert all(len(line) <= 72 for line in text.splitlines())
    assert not re.search(r"0x[0-9a-f]|/\w+/|\.py|Mistake\(|\d\.\d{3}", text)


# What a learner would write; the bank has other matrices for it.
LEARNERS = {
    "transposed": (lambda d: (400 * blocks(d).T, torch.eye(d)), "looks_ahead"),
    "stored as nn.Linear stores": (
        lambda d: (torch.eye(d).T, (400 * blocks(d, -1)).T),
        "looks_ahead",
    ),
    "the two swapped": (lambda d: (torch.eye(d), 400 * blocks(d)), "looks_ahead"),
    "both turned": (lambda d: (20 * blocks(d), 20 * blocks(d)), "looks_at_itself"),
    "both the identity": (lambda d: (30 * torch.eye(d), 30 * torch.eye(d)), "looks_at_itself"),
    "degrees": (lambda d: (400 * blocks(d, 3.14159 / 180), torch.eye(d)), "looks_at_itself"),
    "too quiet": (lambda d: (12 * blocks(d), torch.eye(d)), "not_sharp"),
    "loud enough at d_model 8 alone": (lambda d: (80 * blocks(d), torch.eye(d)), "not_sharp"),
    "two steps": (lambda d: (400 * blocks(d, 2), torch.eye(d)), "looks_two_back"),
    "minus": (lambda d: (blocks(d), -400 * torch.eye(d)), "negative"),
    "one speed": (lambda d: (300 * blocks(d, angles=1.0), torch.eye(d)), "one_speed"),
    "keys of one hand": (
        lambda d: (400 * blocks(d), torch.diag((torch.arange(d) < 2).float())),
        "one_hand",
    ),
    "moved with the factor on the other": (
        lambda d: (torch.eye(d).roll(1, dims=1), 50 * torch.eye(d)),
        "columns_moved",
    ),
    "no queries": (lambda d: (torch.zeros(d, d), blocks(d)), "all_alike"),
    "for the example alone": (lambda d: (200 * blocks(8), torch.eye(8)), "always_eight"),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learners_version_of_it_is_named(name):
    function, mistake = LEARNERS[name]
    for seed in (0, 1, 2):
        result = check_look_back(function, seed=seed)
        assert not result.passed
        assert result.mistakes == (mistake,), result


def test_the_weights_are_the_books():
    case = TASK.cases(checks.inputs.Numbers(0))[0]
    w_q, w_k = look_back.look_back(8)
    x = SinusoidalPositionalEncoding(8).table[: case.length]
    scores = (x @ w_q) @ (x @ w_k).T / 8**0.5
    torch.testing.assert_close(attended((w_q, w_k), case).float(), scores.softmax(-1))
    assert (scores.softmax(-1).diagonal(-1) >= LEAST).all()


def test_several_lengths_and_widths_are_tried():
    for seed in range(10):
        cases = TASK.cases(checks.inputs.Numbers(seed))
        assert len({case.length for case in cases}) >= 3
        assert len({case.inputs["d_model"] for case in cases}) >= 3
        assert max(case.length for case in cases) > 45, "the fast hand has gone round seven times"
        assert str(cases[0]) == "d_model=8 and 6 positions"


def test_the_least_weight_decides():
    """Just below 0.9 in one row of one case fails, just above passes."""

    def loud(factor):
        return lambda d_model: (factor * blocks(d_model), torch.eye(d_model))

    def least(factor):
        tried = [(case, loud(factor)(case.inputs["d_model"])) for case in cases]
        return min(attended(pair, case).diagonal(-1).min().item() for case, pair in tried)

    cases = TASK.cases(checks.inputs.Numbers(0))
    factors = [f for f in range(50, 500) if least(f) < LEAST]
    assert not check_look_back(loud(factors[-1])).passed
    assert "0.90 of its weight" not in repr(check_look_back(loud(factors[-1])))
    assert check_look_back(loud(factors[-1] + 1)).passed


def test_a_head_with_a_habit_of_its_own_is_told_in_numbers():
    """Three back is no mistake of the bank."""
    result = check_look_back(lambda d_model: (500 * blocks(d_model, 3), torch.eye(d_model)))
    assert not result.passed
    assert result.mistakes == ()
    assert "With d_model=8 and 6 positions: row 1 gives 0.00 of its weight" in " ".join(
        repr(result).split()
    )


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda d: torch.eye(d), "one matrix came back, and two are due: `return w_q, w_k`"),
        (lambda d: (torch.eye(d).long(), torch.eye(d)), "the dtype of your w_q is int64"),
        (lambda d: (torch.eye(d), torch.eye(d) / 0), "your w_k holds NaN or infinity"),
        (lambda d: (torch.eye(d), torch.eye(d)[0]), "the shape of your w_k is (8,)"),
        (lambda d: (torch.eye(d), 1.0), "A value of type float came back"),
        (lambda d: {"w_q": torch.eye(d)}, "it must return (w_q, w_k)"),
        (lambda d: (torch.rand(d, d), torch.eye(d)), "Two calls with the same inputs give"),
        (lambda d: (torch.eye(d), torch.eye(d), torch.eye(d)), "A tuple of 3 came back"),
    ],
)
def test_what_is_no_pair_of_matrices(function, words):
    result = check_look_back(function)
    assert not result.passed
    assert result.mistakes == ()
    assert words in " ".join(repr(result).split())


def test_looking_does_not_depend_on_the_factor():
    case = TASK.cases(checks.inputs.Numbers(0))[1]
    pairs = [(f * blocks(4), torch.eye(4)) for f in (0.1, 1.0, 1e4)]
    assert len({looks(pair, case) for pair in pairs}) == 1
