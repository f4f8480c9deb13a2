"""check_training_loop: what learners write is named, and what a bank cannot hold has its words."""

import re

import pytest
import torch
from torch.nn import functional as F

from attention.checks import check_training_loop

pytestmark = pytest.mark.usefixtures("as_a_reader")


def loop(order, *, mode=torch.nn.Module.train, loss_of=None, kept=torch.Tensor.item):
    """A learner's loop, with a place for each mistake.

    order: the letters of zero_grad, forward pass, backward and step, as they come.
    """

    def training_loop(model, optimiser, batches):
        mode(model)
        losses = []
        for token_ids, verb, who in batches:
            for letter in order:
                if letter == "z":
                    optimiser.zero_grad()
                elif letter == "f":
                    logits = model(token_ids)
                    if loss_of is None:
                        rows = torch.stack([logits[i, place] for i, place in enumerate(verb)])
                        loss = F.cross_entropy(rows, who)
                    else:
                        loss = loss_of(logits, verb, who)
                elif letter == "b":
                    loss.backward()
                else:
                    optimiser.step()
            losses.append(kept(loss))
        return torch.tensor(losses) if isinstance(losses[0], float) else torch.stack(losses)

    return training_loop


def running_total(retain):
    def training_loop(model, optimiser, batches):
        model.train()
        total, losses = 0, []
        for token_ids, verb, who in batches:
            optimiser.zero_grad()
            total = total + F.cross_entropy(model(token_ids)[range(len(verb)), verb], who)
            total.backward(retain_graph=retain)
            optimiser.step()
            losses.append(total.item())
        return torch.tensor(losses)

    return training_loop


def step_behind_the_loop(model, optimiser, batches):
    model.train()
    losses = []
    for token_ids, verb, who in batches:
        loss = F.cross_entropy(model(token_ids)[range(len(verb)), verb], who)
        loss.backward()
        losses.append(loss.item())
    optimiser.step()
    return torch.tensor(losses)


def returned_in_the_loop(model, optimiser, batches):  # noqa: RET503 - the mistake itself
    model.train()
    losses = []
    for token_ids, verb, who in batches:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(token_ids)[range(len(verb)), verb], who)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
        return torch.stack(losses)


def at_one_place(logits, verb, who):
    return F.cross_entropy(logits[:, int(verb[0]), :], who)


def at_the_end(logits, verb, who):
    return F.cross_entropy(logits[:, logits.shape[1] - 1], who)


def everywhere(logits, verb, who):
    return F.cross_entropy(logits.flatten(0, 1), who.repeat_interleave(logits.shape[1]))


def at_all_verbs(logits, verb, who):
    return F.cross_entropy(logits[:, verb], who)


def of_shares(logits, verb, who):
    return F.cross_entropy(F.softmax(logits, -1)[range(len(verb)), verb], who)


def in_sum(logits, verb, who):
    return sum(F.cross_entropy(logits[i, verb[i]], who[i]) for i in range(len(verb)))


LEARNERS = {
    "no zero_grad": (loop("fbs"), "not_cleared"),
    "zero_grad between": (loop("fbzs"), "cleared_before_the_step"),
    "step before backward, cleared at the end": (loop("fsbz"), "cleared_before_the_step"),
    "zero_grad, step, backward": (loop("zsfb"), "cleared_before_the_step"),
    "step first": (loop("szfb"), "one_batch_late"),
    "step before backward": (loop("fszb"), "changed_before_backward"),
    "step before backward, never cleared": (loop("fsb"), "changed_before_backward"),
    "running total": (running_total(False), "running_total"),
    "running total, its graph retained": (running_total(True), "changed_before_backward"),
    "step behind the loop": (step_behind_the_loop, "one_step_at_the_end"),
    "model.eval()": (loop("fzbs", mode=torch.nn.Module.eval), "in_evaluation_mode"),
    "no model.train()": (loop("fzbs", mode=lambda model: None), "in_evaluation_mode"),
    "one place": (loop("fzbs", loss_of=at_one_place), "at_the_first_verbs_place"),
    "the last row": (loop("fzbs", loss_of=at_the_end), "of_the_last_row"),
    "all rows": (loop("fzbs", loss_of=everywhere), "of_all_rows"),
    "logits[:, verb]": (loop("fzbs", loss_of=at_all_verbs), "three_axes"),
    "shares": (loop("fzbs", loss_of=of_shares), "softmax_twice"),
    "a sum": (loop("fzbs", loss_of=in_sum), "summed"),
    "return in the loop": (returned_in_the_loop, "first_batch_alone"),
    "a graph too, which is the smaller mistake": (loop("fbs", kept=lambda x: x), "not_cleared"),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learners_version_of_it_is_named(name):
    function, mistake = LEARNERS[name]
    for seed in (0, 1):
        assert check_training_loop(function, seed=seed).mistakes == (mistake,)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (loop("fzbs", kept=lambda loss: loss), "your losses still belong to the graph"),
        (loop("fzb"), "The optimiser never takes a step"),
        (loop("fzs"), "No gradient ever reaches the model's parameters"),
        (lambda model, optimiser, batches: None, "it must return one tensor"),
        (lambda model, optimiser, batches: [1.0, 2.0], "type list, of length 2, came back"),
        (lambda model: None, "takes 1 positional argument but 3 were given"),
        (torch.zeros(3), "This is a Tensor."),
    ],
)
def test_what_no_bank_can_hold_has_its_words(function, words):
    result = check_training_loop(function)
    assert not result.passed
    assert result.mistakes == ()
    assert words in re.sub(r"\s+", " ", repr(result))


def test_the_callers_random_numbers_and_gradients_are_left_alone():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with torch.no_grad():
        assert check_training_loop(loop("zfbs")).passed
    assert torch.equal(torch.get_rng_state(), before)


def test_the_callers_default_dtype_does_not_matter():
    try:
        torch.set_default_dtype(torch.float64)
        assert check_training_loop(loop("zfbs")).passed
    finally:
        torch.set_default_dtype(torch.float32)
