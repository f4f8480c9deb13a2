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


def trained(model, optimiser, batches, loss_of=of_the_verbs_row):
    """The right loop, or one around another loss of (logits, verb, who)."""
    return followed(losses_of(model, batches, loss_of), optimiser)


@on_a_new_model
def training_loop(model, optimiser, batches):
    """A model, its optimiser, batches of (token_ids, verb, who) -> losses, (steps,)."""
    return trained(model, optimiser, batches)


BANK = Bank.read(__file__, training_loop, globals(), made=on_a_new_model)


@dataclass(frozen=True)
class Batches(Case):
    """The tensors of all batches, stacked: the learner gets one batch after the other."""

    def __str__(self) -> str:
        steps, batch, seq = self.inputs["token_ids"].shape
        return f"{steps} batches of {batch} sentences, {seq} tokens each"


def cases(numbers: Numbers) -> list[Batches]:
    def case() -> Batches:
        steps, batch, seq = sorted(numbers.sizes(3, least=3))  # the check is fast with few steps

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
