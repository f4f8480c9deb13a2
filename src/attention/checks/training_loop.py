"""check_training_loop (chapter 8): the loop that trains a model.

The loop trains its model in place, so each call is given a new one. What is compared is the losses
that it returns and the parameters that it leaves behind.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result
from .running import Message, parts_of

BANK = Bank()
VOCAB_SIZE, D_MODEL = 11, 6
NEVER = {
    "backward": "No gradient ever reaches the model's parameters. Call `loss.backward()` for every "
    "batch, on a loss that still belongs to the graph: `.item()` and `.detach()` come after it.",
    "step": "The optimiser never takes a step, so the model stays what it was. Call "
    "`optimiser.step()` for every batch, after `loss.backward()`.",
}
ATTACHED = (
    "The values are right, and your losses still belong to the graph. Each of them keeps the graph "
    "of its forward pass, so that memory grows with every step. Keep the number alone: "
    "`losses.append(loss.item())`, or `loss.detach()`."
)
ORDER = (
    "For each batch: the loss, `optimiser.zero_grad()`, `loss.backward()`, `optimiser.step()`, in "
    "this order."
)
ROW = "Each sentence has a row of its own: `logits[torch.arange(len(verb)), verb]`."


def on_a_new_model(loop: Callable) -> Callable:
    """The loop as a function of the batches' tensors, which trains another model at every call.

    It returns losses, (steps,), and the parameters after training, in one row.
    """

    @wraps(loop)
    def run(token_ids, verb, who):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Embedding(VOCAB_SIZE, D_MODEL, dtype=torch.float32),
            nn.Dropout(0.5),
            nn.Linear(D_MODEL, VOCAB_SIZE, dtype=torch.float32),
        ).eval()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
        happened = set()
        model[-1].bias.register_post_accumulate_grad_hook(lambda _: happened.add("backward"))
        optimiser.register_step_post_hook(lambda *_: happened.add("step"))
        batches = (batch for batch in zip(token_ids, verb, who, strict=True))

        torch.manual_seed(0)  # the same dropout at every call, and in a loop that seeds so itself
        [losses] = parts_of(loop(model, optimiser, batches), ["losses"])
        for event, message in NEVER.items():
            if event not in happened:
                raise Message(message)
        return losses, torch.cat([parameter.flatten() for parameter in model.parameters()])

    return run


def of_the_verbs_row(logits, verb, who):
    """logits (batch, seq, vocab_size), verb (batch,), who (batch,) -> the loss."""
    return F.cross_entropy(rows_of(logits, verb), who)


def rows_of(logits, verb):
    """The verb's row of each sentence, (batch, vocab_size)."""
    return logits[torch.arange(len(verb)), verb]


def losses_of(model, batches, loss_of=of_the_verbs_row) -> Iterator[Tensor]:
    """The loss of one batch after the other, in training mode."""
    model.train()
    for token_ids, verb, who in batches:
        yield loss_of(model(token_ids), verb, who)


def followed(losses, optimiser):
    """Take a step for each loss; return the losses as numbers."""
    numbers = []
    for loss in losses:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        numbers.append(loss.item())
    return torch.tensor(numbers)


def with_loss(loss_of: Callable) -> Callable:
    """The right loop around another loss of (logits, verb, who)."""

    @on_a_new_model
    @wraps(loss_of)
    def loop(model, optimiser, batches):
        return followed(losses_of(model, batches, loss_of), optimiser)

    return loop


@on_a_new_model
def training_loop(model, optimiser, batches):
    """A model, its optimiser, batches of (token_ids, verb, who) -> losses, (steps,)."""
    return followed(losses_of(model, batches), optimiser)


@BANK.mistake(
    "The gradients pile up: `backward` adds to those that are there, so each step follows the sum "
    "of all batches so far.",
    "Call `optimiser.zero_grad()` for every batch, before `loss.backward()`.",
)
@on_a_new_model
def not_cleared(model, optimiser, batches):
    numbers = []
    for loss in losses_of(model, batches):
        loss.backward()
        optimiser.step()
        numbers.append(loss.item())
    return torch.tensor(numbers)


@BANK.mistake(
    "The parameters stay where they were, because `step` never finds a gradient. Between "
    "`backward` and the next `step` comes `zero_grad`, perhaps at the start of the next batch.",
    ORDER,
)
@on_a_new_model
def cleared_before_the_step(model, optimiser, batches):
    numbers = []
    for loss in losses_of(model, batches):
        loss.backward()
        optimiser.zero_grad()
        optimiser.step()
        numbers.append(loss.item())
    return torch.tensor(numbers)


@BANK.mistake(
    "Each step is taken one batch late: it follows the gradient of the batch before, and nothing "
    "ever follows that of the last one.",
    ORDER,
)
@on_a_new_model
def one_batch_late(model, optimiser, batches):
    numbers = []
    model.train()
    for token_ids, verb, who in batches:
        optimiser.step()
        optimiser.zero_grad()
        loss = of_the_verbs_row(model(token_ids), verb, who)
        loss.backward()
        numbers.append(loss.item())
    return torch.tensor(numbers)


@BANK.mistake(
    "A step changes parameters that `backward` still needs as they were. Either `step` stands "
    "between the forward pass and `backward`, or the loss reaches back to earlier batches, as a "
    "running total does.",
    f"Give `backward` the loss of one batch, without `retain_graph`. {ORDER}",
)
@on_a_new_model
def changed_before_backward(model, optimiser, batches):
    numbers = []
    for loss in losses_of(model, batches):
        optimiser.step()
        optimiser.zero_grad()
        loss.backward()
        numbers.append(loss.item())
    return torch.tensor(numbers)


@BANK.mistake(
    "`backward` goes through the graph of an earlier batch again, because its loss is part of this "
    "one: a running total keeps the graphs of all batches.",
    "Call `backward` on the loss of one batch, and add up numbers alone: `total += loss.item()`.",
)
@on_a_new_model
def running_total(model, optimiser, batches):
    totals, total = [], 0.0
    for loss in losses_of(model, batches):
        total = total + loss
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        totals.append(total.item())
    return torch.tensor(totals)


@BANK.mistake(
    "There is one step, at the end, for all batches together. All losses are those of the model "
    "before training.",
    f"Let `step` stand inside the loop. {ORDER}",
)
@on_a_new_model
def one_step_at_the_end(model, optimiser, batches):
    losses = torch.stack(list(losses_of(model, batches)))
    losses.sum().backward()
    optimiser.step()
    return losses.detach()


@BANK.mistake(
    "There is one step, at the end, along the mean loss of all batches. All losses are those of "
    "the model before training.",
    f"Let `step` stand inside the loop. {ORDER}",
)
@on_a_new_model
def one_step_for_the_mean(model, optimiser, batches):
    losses = torch.stack(list(losses_of(model, batches)))
    losses.mean().backward()
    optimiser.step()
    return losses.detach()


@BANK.mistake(
    "The model trains without dropout: it came in evaluation mode, and stays in it.",
    "Call `model.train()` before the loop.",
)
@on_a_new_model
def in_evaluation_mode(model, optimiser, batches):
    losses = (of_the_verbs_row(model(token_ids), verb, who) for token_ids, verb, who in batches)
    return followed(losses, optimiser)


@BANK.mistake(
    "The loss is that of the last row, wherever the verb stands.",
    ROW,
)
@with_loss
def of_the_last_row(logits, verb, who):
    return F.cross_entropy(logits[:, -1], who)


@BANK.mistake(
    "Every row of a sentence is asked for its answer, and the loss is their mean. The answer is "
    "read off the verb's row alone.",
    ROW,
)
@with_loss
def of_all_rows(logits, verb, who):
    return F.cross_entropy(logits.mT, who[:, None].expand(-1, logits.shape[1]))


@BANK.mistake(
    "The logits of all rows are averaged before the loss. The answer is read off the verb's row "
    "alone.",
    ROW,
)
@with_loss
def of_the_mean_row(logits, verb, who):
    return F.cross_entropy(logits.mean(dim=1), who)


@BANK.mistake(
    "`logits[:, verb[0]]` takes the same row of every sentence, the place of the first sentence's "
    "verb. Other verbs stand elsewhere.",
    ROW,
)
@with_loss
def at_the_first_verbs_place(logits, verb, who):
    return F.cross_entropy(logits[:, verb[0]], who)


@BANK.mistake(
    "`logits[0, verb]` takes all rows from the first sentence of the batch.",
    ROW,
)
@with_loss
def of_the_first_sentence(logits, verb, who):
    return F.cross_entropy(logits[0, verb], who)


@BANK.mistake(
    "`cross_entropy` is given three axes and takes the second for the classes. It wants one row of "
    "logits for each sentence, (batch, vocab_size); `logits[:, verb]` takes the rows of all verbs "
    "from every sentence, (batch, batch, vocab_size).",
    ROW,
)
@with_loss
def three_axes(logits, verb, who):
    return F.cross_entropy(logits, who)


@BANK.mistake(
    "The softmax is taken twice: `cross_entropy` takes one itself. To it shares between 0 and 1 "
    "look nearly undecided, so the loss hardly tells right from wrong.",
    "Give it the logits: `F.cross_entropy(rows, who)`.",
)
@with_loss
def softmax_twice(logits, verb, who):
    return F.cross_entropy(rows_of(logits, verb).softmax(dim=-1), who)


@BANK.mistake(
    "`nll_loss` is given the logits. It only picks the right word's entry, and expects the "
    "logarithms of shares there.",
    "Take `F.cross_entropy(rows, who)`, or give `nll_loss` the `log_softmax` of the logits.",
)
@with_loss
def nll_of_logits(logits, verb, who):
    return F.nll_loss(rows_of(logits, verb), who)


@BANK.mistake(
    "The loss is summed over the sentences of a batch. The step grows with the batch, and so would "
    "the learning rate that fits.",
    "Take the mean, which `F.cross_entropy` does unless told otherwise.",
)
@with_loss
def summed(logits, verb, who):
    return F.cross_entropy(rows_of(logits, verb), who, reduction="sum")


@BANK.mistake(
    "The place of the verb is taken for the right answer.",
    "`verb` says which row answers, and `who` what it should say: `F.cross_entropy(rows, who)`.",
)
@with_loss
def verb_as_the_answer(logits, verb, who):
    return F.cross_entropy(rows_of(logits, verb), verb)


@BANK.mistake(
    "This is the loss of the first batch alone: `return` stands inside the loop and ends it.",
    "Move `return` out, to the column of `for`.",
)
@on_a_new_model
def first_batch_alone(model, optimiser, batches):
    return followed(losses_of(model, [next(batches)]), optimiser)


@BANK.mistake(
    "The model is trained well, and this is the last loss alone. Whether a loss falls shows only "
    "in all of them.",
    "Keep one number a step, `losses.append(loss.item())`, and return `torch.tensor(losses)`.",
)
@on_a_new_model
def last_loss_alone(model, optimiser, batches):
    return followed(losses_of(model, batches), optimiser)[-1]


@BANK.mistake(
    "The model is trained well, and this is the mean of its losses. Whether a loss falls shows "
    "only in all of them.",
    "Keep one number a step, `losses.append(loss.item())`, and return `torch.tensor(losses)`.",
)
@on_a_new_model
def mean_of_the_losses(model, optimiser, batches):
    return followed(losses_of(model, batches), optimiser).mean()


@BANK.mistake(
    "The loss has no graph, so there is nothing for `backward` to go through. `torch.no_grad()` "
    "and `.detach()` cut it off.",
    "Make the loss in the open, call `backward`, and detach what you keep after that.",
)
@on_a_new_model
def without_a_graph(model, optimiser, batches):
    with torch.no_grad():
        losses = list(losses_of(model, batches))
    return followed(losses, optimiser)


@BANK.mistake(
    "`.item()` makes a plain number of the loss, and a number has no `backward`.",
    "Call `loss.backward()` first, on the tensor, and keep `loss.item()` after it.",
)
@on_a_new_model
def number_before_backward(model, optimiser, batches):
    return followed((loss.item() for loss in losses_of(model, batches)), optimiser)


@BANK.mistake(
    "`batches` is drawn as it goes, like the chapter's, so it has no length.",
    "Go through it with `for token_ids, verb, who in batches`, and append each loss to a list.",
)
@on_a_new_model
def length_of_batches(model, optimiser, batches):
    return torch.zeros(len(batches))


@BANK.mistake(
    "A batch is a plain tuple of three here: it has no names.",
    "Unpack it: `for token_ids, verb, who in batches`.",
)
@on_a_new_model
def batch_with_names(model, optimiser, batches):
    return followed((model(batch.token_ids) for batch in batches), optimiser)


@BANK.mistake(
    "The model is given the verb too, as the chapter's is. This one takes token_ids alone and "
    "answers at every row.",
    f"`logits = model(token_ids)` is (batch, seq, vocab_size). {ROW}",
)
@on_a_new_model
def verb_given_to_the_model(model, optimiser, batches):
    return followed((model(token_ids, verb) for token_ids, verb, who in batches), optimiser)


@dataclass(frozen=True)
class Batches(Case):
    """The tensors of all batches, stacked: the learner gets one batch after the other."""

    def __str__(self) -> str:
        steps, batch, seq = self.inputs["token_ids"].shape
        return f"{steps} batches of {batch} sentences, {seq} tokens each"


def cases(numbers: Numbers) -> list[Batches]:
    def case() -> Batches:
        steps, batch, seq = sorted(numbers.sizes(3, least=3))  # the check is quick with few steps

        def words(*shape):
            return torch.randint(VOCAB_SIZE, shape, generator=numbers.numbers_from)

        start = numbers.sizes_from.randrange(seq)
        # From sentence to sentence another place, and never the last.
        verb = (start + torch.arange(steps * batch).view(steps, batch)) % (seq - 1)
        token_ids, who = words(steps, batch, seq), words(steps, batch)
        return Batches({"token_ids": token_ids, "verb": verb, "who": who})

    return [case(), case()]


TASK = Task(
    "training_loop",
    training_loop,
    BANK,
    cases,
    {"losses": "steps", "parameters": "parameters"},
    "It remembers the call before, or draws from a source of its own. (Dropout draws the same "
    "numbers in both calls.)",
)


def check_training_loop(function: Callable, *, seed: int = 0) -> Result:
    """Check training_loop(model, optimiser, batches) -> losses.

    model maps token_ids (batch, seq) to logits (batch, seq, vocab_size), has dropout and comes in
    evaluation mode. batches yields (token_ids, verb, who), verb and who (batch,). The loss is the
    cross-entropy of the verb's row against who. The model is trained in place; losses (steps,), one
    for each batch, have no gradient.
    """
    if not callable(function):
        return examine(TASK, function, seed)
    attached = []

    def watched(*inputs):
        losses = function(*inputs)
        attached.append(isinstance(losses, Tensor) and losses.requires_grad)
        return losses

    result = examine(TASK, on_a_new_model(watched), seed)
    if result.passed and any(attached):
        return Result(result.check, False, (ATTACHED,))
    return result
