"""What a check stands on where it does not compare numbers, or tells errors apart by theirs."""

import re
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from attention import causal_mask, checks
from attention.checks import back_to_verb, decoder_step, training_step, two_heads, what_followed
from attention.checks.comparing import close
from attention.checks.inputs import Numbers
from attention.checks.look_back import LEAST, TASK, attended
from tests.unit.checks import written

pytestmark = pytest.mark.usefixtures("as_a_reader")


def test_look_back_the_least_weight_decides():
    """Just below 0.9 in one row of one case fails, just above passes."""

    def loud(factor):
        return partial(written.look_back, loud=factor)

    cases = TASK.cases(Numbers(0))
    low, high = 50.0, 500.0
    while high - low > 1:
        factor = (low + high) / 2
        tried = [(case, loud(factor)(case.inputs["d_model"])) for case in cases]
        least = min(attended(pair, case).diagonal(-1).min() for case, pair in tried)
        low, high = (factor, high) if least < LEAST else (low, factor)
    assert not checks.check_look_back(loud(low)).passed
    assert "0.90 of its weight" not in repr(checks.check_look_back(loud(low)))
    assert checks.check_look_back(loud(high)).passed


def test_decoder_step_no_two_widths_that_an_error_tells_agree():
    """Errors say widths, and a mistake is known by them alone."""
    for seed in range(30):
        for case in decoder_step.TASK.cases(Numbers(seed)):
            query, sign = (case.inputs[name].shape[1] for name in ("state", "previous"))
            keys, key = case.inputs["encoded"].shape[1:]
            assert len({sign, key, query, sign + keys}) == 4  # what may go into the GRU
            assert len({query, query + sign, query + key}) == 3  # and into the output layer


def test_what_followed_tokens_come_once_twice_and_more_often():
    for seed in range(20):
        for case in what_followed.TASK.cases(Numbers(seed)):
            weights, ids = case.inputs.values()
            counts = [row.tolist().count(token) for row in ids for token in row.tolist()]
            assert {1, 2}.issubset(counts) and max(counts) > 2
            assert weights.triu(1).sum() == 0
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))


def test_back_to_verb_a_verb_stands_before_its_object_and_some_heads_look_there_most():
    """Where no head did, counting the largest would give what swapped roles give: 0."""
    for seed in range(20):
        for case in back_to_verb.TASK.cases(Numbers(seed)):
            weights, objects, verbs = case.inputs.values()
            assert len(verbs.unique()) == len(objects.unique()) == len(verbs) >= 3
            assert verbs.min() > 0 and (objects - verbs).min() > 0
            assert weights.triu(1).sum() == 0
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
            rows = torch.stack([weights[i, :, place] for i, place in enumerate(objects)])
            assert rows[..., 0].mean() > 1 / 4
            largest = rows.argmax(-1)
            assert (largest == verbs[:, None]).any() and (largest == 0).any()


def test_two_heads_every_habit_of_the_bank_is_known_and_its_own():
    [case] = two_heads.cases(Numbers(0))
    habits = [bytes(mistake(*case.copies()).tolist()) for mistake in two_heads.BANK]
    assert b"" not in habits
    assert len(set(habits)) == len(habits)
    said = checks.check_two_heads(written.two_heads).paragraphs[0]
    right, all_of_them = map(int, said.split(" answers")[0].split(" of "))
    assert right == all_of_them > 100


def rows_that_leak(function):
    said = " ".join(repr(checks.check_training_step(function)).split())
    found = re.search(r"The future leaks: .* rows (\[.*?\])", said)
    return found and found[1]


def test_training_step_looking_ahead_is_found_by_changing_the_last_sign():
    case = training_step.TASK.cases(Numbers(0))[0]
    last = case.inputs["signs"].shape[1] - 2
    step = partial(partial, written.training_step)
    for mask in (lambda n: None, lambda n: causal_mask(n).T, lambda n: ~causal_mask(n)):
        assert rows_that_leak(step(mask=mask)) == str(list(range(last)))
    assert rows_that_leak(step(mask=lambda n: torch.ones(n, n).tril(1) == 1)) == str([last - 1])
    # Where no mistake has the outcome, too.
    two_ahead = step(mask=lambda n: torch.ones(n, n).tril(2) == 1)
    twice_wrong = step(mask=lambda n: None, ignore_index=-1, reduction="sum")
    for function in (two_ahead, twice_wrong):
        assert checks.check_training_step(function).mistakes == ()
        assert rows_that_leak(function)


def test_training_step_nothing_leaks_where_no_row_reads_ahead():
    def beginnings_added_up(model, letters, signs, pad_id):
        """Without a mask, and it needs none: a pass for each beginning."""
        ends = range(1, signs.shape[1])
        rows = [model(letters, signs[:, :i], None)[:, -1] for i in ends]
        logits = torch.stack(rows, dim=1).flatten(0, 1)
        return F.cross_entropy(logits, signs[:, 1:].flatten(), reduction="sum")

    step = partial(partial, written.training_step)
    strict = step(mask=lambda n: torch.ones(n, n).tril(-1) == 1)
    for function in (strict, beginnings_added_up, step(ignore_index=-1), step()):
        assert not rows_that_leak(function)
    assert "The gradients are right too." in repr(checks.check_training_step(step()))


def test_training_step_a_row_of_its_model_reads_what_the_mask_allows_and_nothing_else():
    for seed in range(3):
        for case in training_step.cases(Numbers(seed)):
            model, letters, signs, pad_id = case.inputs.values()
            lengths = (signs != pad_id).sum(1)
            assert lengths.min() < lengths.max() == signs.shape[1]
            assert (signs == 0).any()  # a sign of id 0, or padding
            n = signs.shape[1]
            mask = Numbers(seed).tensor(n, n) > 0
            logits = model(letters, signs, mask)
            for j in range(n):
                other = signs.clone()
                other[:, j] = (other[:, j] + 1) % training_step.VOCAB
                moved = ~close(logits, model(letters, other, mask)).all(dim=-1)
                due = mask[:, j] | (torch.arange(n) == j)  # the residual
                assert torch.equal(moved, due.expand_as(moved)), (seed, j)
