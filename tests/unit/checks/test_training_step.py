"""check_training_step: what a learner would write; the bank has other code for it."""

import re
from functools import partial

import pytest
import torch
from torch.nn import functional as F

from attention import causal_mask
from attention.checks import check_training_step, training_step
from attention.checks.comparing import close
from attention.checks.inputs import Numbers

pytestmark = pytest.mark.usefixtures("as_a_reader")


def step(
    model,
    letters,
    signs,
    pad_id,
    *,
    mask=lambda n: torch.ones(n, n).tril() == 1,
    reads=slice(None, -1),
    answers=slice(1, None),
    flat=lambda logits: logits.flatten(0, 1),
    back=lambda loss: loss,
    **options,
):
    """Right as it stands; each of what stands behind the star is a place to go wrong."""
    goes_in = signs[:, reads]
    logits = flat(model(letters, goes_in, mask(goes_in.shape[1])))
    wanted = signs[:, answers].flatten() if logits.ndim == 2 else signs[:, answers]
    return back(F.cross_entropy(logits, wanted, **{"ignore_index": pad_id, **options}))


def by_hand(model, letters, signs, pad_id, *, count):
    n = signs.shape[1] - 1
    logits = model(letters, signs[:, :-1], causal_mask(n))
    taken = logits.log_softmax(-1).gather(-1, signs[:, 1:, None])[..., 0]
    real = signs[:, 1:] != pad_id
    return count(-taken * real, real)


def without_grad(*inputs):
    with torch.no_grad():
        return step(*inputs)


def made_anew(*inputs):
    return torch.tensor(step(*inputs).item(), requires_grad=True)


def with_backward(*inputs):
    loss = step(*inputs)
    loss.backward()
    return loss


def letters_alone(model, letters, signs, pad_id):
    return step(model, letters, letters, pad_id)


# What a learner would write, and the bank's name of it.
LEARNERS = {
    "the mask forgotten": (partial(step, mask=lambda n: None), "no_mask"),
    "all may be seen": (partial(step, mask=lambda n: torch.ones(n, n) == 1), "no_mask"),
    "as torch's masks": (partial(step, mask=lambda n: torch.ones(n, n).triu(1) == 1), "inverted"),
    "triu": (partial(step, mask=lambda n: torch.ones(n, n).triu() == 1), "transposed"),
    "less than": (
        partial(step, mask=lambda n: torch.arange(n) < torch.arange(n)[:, None]),
        "without_itself",
    ),
    "up to the next": (
        partial(step, mask=lambda n: torch.arange(n) <= torch.arange(n)[:, None] + 1),
        "one_ahead",
    ),
    "-inf": (
        partial(step, mask=lambda n: torch.zeros(n, n).masked_fill(~causal_mask(n), -torch.inf)),
        "mask_to_be_added",
    ),
    "as long as the answer with <start>": (
        partial(step, mask=lambda n: causal_mask(n + 1)),
        "mask_too_long",
    ),
    "the same": (partial(step, answers=slice(None, -1)), "not_shifted"),
    "all and all": (partial(step, reads=slice(None), answers=slice(None)), "whole_not_shifted"),
    "the two changed": (
        partial(step, reads=slice(1, None), answers=slice(None, -1)),
        "shifted_the_wrong_way",
    ),
    "shifted in the answer too": (
        partial(step, reads=slice(None, -2), answers=slice(2, None)),
        "shifted_twice",
    ),
    "all in": (partial(step, reads=slice(None)), "a_row_too_many"),
    "padding forgotten": (partial(step, ignore_index=-1), "padding_counted"),
    "0": (partial(step, ignore_index=0), "zero_left_out"),
    "zeros averaged": (partial(by_hand, count=lambda x, real: x.mean()), "mean_over_padding"),
    "added up by hand": (partial(by_hand, count=lambda x, real: x.sum()), "summed"),
    "by row, then by batch": (
        partial(by_hand, count=lambda x, real: (x.sum(1) / real.sum(1)).mean()),
        "mean_of_means",
    ),
    "axes left as they are": (partial(step, flat=lambda logits: logits), "not_flattened"),
    "probabilities": (
        partial(step, flat=lambda logits: F.softmax(logits.flatten(0, 1), -1)),
        "softmax_first",
    ),
    "letters as signs": (letters_alone, "letters_as_signs"),
    "a number": (partial(step, back=torch.Tensor.item), "detached"),
    "cut off": (partial(step, back=torch.Tensor.detach), "detached"),
    "no_grad": (without_grad, "detached"),
    "made anew": (made_anew, "detached"),
    "the step itself": (
        partial(step, back=lambda loss: loss.backward() or loss),
        "backward_called",
    ),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learners_version_of_it_is_named(name):
    function, mistake = LEARNERS[name]
    for seed in (0, 1, 2):
        result = check_training_step(function, seed=seed)
        assert not result.passed
        assert result.mistakes == (mistake,), result


def rows_that_leak(function):
    found = re.search(r"The future leaks: .* rows (\[.*\])", " ".join(words(function).split()))
    return found and found[1]


def words(function):
    return repr(check_training_step(function))


def test_looking_ahead_is_found_by_changing_the_last_sign():
    case = training_step.TASK.cases(Numbers(0))[0]
    last = case.inputs["signs"].shape[1] - 2
    before = list(range(last))
    assert rows_that_leak(partial(step, mask=lambda n: None)) == str(before)
    assert rows_that_leak(partial(step, mask=lambda n: causal_mask(n).T)) == str(before)
    assert rows_that_leak(partial(step, mask=lambda n: ~causal_mask(n))) == str(before)
    ahead = partial(step, mask=lambda n: torch.ones(n, n).tril(1) == 1)
    assert rows_that_leak(ahead) == str([last - 1])


def test_looking_ahead_is_found_where_no_mistake_has_the_outcome():
    two_ahead = partial(step, mask=lambda n: torch.ones(n, n).tril(2) == 1)
    twice_wrong = partial(step, mask=lambda n: None, ignore_index=-1, reduction="sum")
    for function in (two_ahead, twice_wrong):
        assert check_training_step(function).mistakes == ()
        assert rows_that_leak(function)


def test_nothing_leaks_where_no_row_reads_ahead():
    def beginnings_added_up(model, letters, signs, pad_id):
        """Without a mask, and it needs none: a pass for each beginning."""
        ends = range(1, signs.shape[1])
        rows = [model(letters, signs[:, :i], None)[:, -1] for i in ends]
        logits = torch.stack(rows, dim=1).flatten(0, 1)
        return F.cross_entropy(logits, signs[:, 1:].flatten(), reduction="sum")

    strict = partial(step, mask=lambda n: torch.ones(n, n).tril(-1) == 1)
    for function in (strict, beginnings_added_up, partial(step, ignore_index=-1), step):
        assert "leaks" not in words(function)
    assert check_training_step(step).passed
    assert "The gradients are right too." in words(step)


def test_a_row_of_the_checks_model_reads_what_the_mask_allows_and_nothing_else():
    for seed in range(10):
        for case in training_step.cases(Numbers(seed)):
            model, letters, signs, _ = case.inputs.values()
            n = signs.shape[1]
            mask = Numbers(seed).tensor(n, n) > 0
            logits = model(letters, signs, mask)
            for j in range(n):
                other = signs.clone()
                other[:, j] = (other[:, j] + 1) % training_step.VOCAB
                moved = ~close(logits, model(letters, other, mask)).all(dim=-1)
                due = mask[:, j] | (torch.arange(n) == j)  # the residual
                assert torch.equal(moved, due.expand_as(moved)), (seed, j)


def test_the_right_loss_is_an_average_over_the_signs_that_are_written():
    for seed in range(10):
        for case in training_step.cases(Numbers(seed)):
            model, letters, signs, pad_id = case.inputs.values()
            losses = []
            for text, answer in zip(letters, signs, strict=True):
                for i in range(1, int((answer != pad_id).sum())):
                    chances = model(text[None], answer[None, :i])[0, -1].softmax(-1)
                    losses.append(-chances[answer[i]].log())
            loss, gradient = training_step.training_step(*case.copies())
            due = torch.stack(losses).mean()
            torch.testing.assert_close(loss, due)
            slopes = torch.autograd.grad(due, list(model.parameters()))
            flat = torch.cat([slope.flatten() for slope in slopes])
            torch.testing.assert_close(gradient, flat, atol=1e-5, rtol=1e-4)


def test_every_case_has_padding_and_a_sign_of_id_0_or_padding_of_id_0():
    for seed in range(20):
        first, second = training_step.cases(Numbers(seed))
        assert first.inputs["pad_id"] == 0 != second.inputs["pad_id"]
        for case in (first, second):
            signs, pad_id = case.inputs["signs"], case.inputs["pad_id"]
            lengths = (signs != pad_id).sum(1)
            assert lengths.min() < lengths.max() == signs.shape[1]
            assert (signs == 0).any()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda *inputs: None, "it must return one tensor"),
        (lambda *inputs: [1.0], "A value of type list, of length 1, came back"),
        (lambda model, letters, signs, pad_id: model(letters, signs), "the shape of your loss is"),
        (lambda *inputs: (step(*inputs), 1), "A value of type tuple, of length 2, came back"),
        (lambda *inputs: step(*inputs) / 0, "your loss is inf, expected is"),
        (lambda *inputs: step(*inputs).long(), "the dtype of your loss is int64"),
        (
            lambda *inputs: step(*inputs) * torch.rand(()),
            "drawn at random, or the model is",
        ),
        (lambda *inputs: 3 * step(*inputs) - 2 * step(*inputs).detach(), "of your gradient that"),
    ],
)
def test_what_is_no_loss(function, said):
    result = check_training_step(function)
    assert not result.passed
    assert result.mistakes == ()
    assert said in " ".join(repr(result).split())


def test_a_step_that_is_taken_inside_is_noticed():
    def with_an_optimiser(model, *inputs):
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = step(model, *inputs)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    def by_hand(model, *inputs):
        loss = step(model, *inputs)
        parameters = list(model.parameters())
        slopes = torch.autograd.grad(loss, parameters, retain_graph=True)
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter.data -= 0.1 * slope
        return loss

    assert check_training_step(with_an_optimiser).mistakes == ("backward_called",)
    assert "the model is another one after the call" in " ".join(words(by_hand).split())
