"""check_training_step (chapter 13): the loss of one step, with the causal mask and the shift in it.

The loss is compared, and so is what `backward()` makes of it. Where the loss is wrong, the check
also changes the last sign that went into the model, and looks whether an earlier row moves.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention.dot_product import scaled_dot_product_attention
from attention.masks import causal_mask

from .bank import Bank
from .comparing import close
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result
from .running import aside, outcome, parts_of

VOCAB = 11  # signs that the check's models know
LETTERS = 30
D_MODEL = 8
LONGEST = 12


class Writer(nn.Module):
    """A decoder of one head, small enough to be drawn afresh for each case."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__()
        self.letters = nn.Parameter(numbers.tensor(LETTERS, D_MODEL))
        self.signs = nn.Parameter(numbers.tensor(VOCAB, D_MODEL))
        self.positions = nn.Parameter(numbers.tensor(LONGEST, D_MODEL))
        self.to_logits = nn.Parameter(numbers.tensor(D_MODEL, VOCAB) / 8)
        self.asked = []  # what each call was given

    def forward(self, letters: Tensor, signs: Tensor, mask: Tensor | None = None) -> Tensor:
        """letters (batch, source), signs (batch, target) -> logits (batch, target, VOCAB)."""
        self.asked.append((letters, signs, mask))
        read = F.embedding(letters, self.letters).mean(dim=1, keepdim=True)
        x = F.embedding(signs, self.signs) + self.positions[: signs.shape[1]]
        head = x[:, None]  # (batch, 1, target, D_MODEL)
        # Small scores: every sign that a row may see changes it.
        seen, _ = scaled_dot_product_attention(head / 4, head, head, mask)
        return (x + seen[:, 0] + read) @ self.to_logits


def with_gradient(function: Callable) -> Callable:
    """The function with its loss followed by the gradient of all parameters: both are compared."""

    @wraps(function)
    def step(model, letters, signs, pad_id):
        loss = function(model, letters, signs, pad_id)
        if isinstance(loss, float):
            loss = torch.tensor(loss)  # from `.item()`: right as a number, and without a gradient
        parts_of(loss, ["loss"])  # tells what is no tensor
        parameters = list(model.parameters())
        if not loss.requires_grad:
            return loss, torch.cat([torch.zeros_like(p).flatten() for p in parameters])
        slopes = torch.autograd.grad(
            loss.sum(), parameters, allow_unused=True, materialize_grads=True
        )
        return loss, torch.cat([slope.flatten() for slope in slopes])

    return step


def loss_of(model, letters, reads, answers, pad_id, mask=causal_mask, **options):
    """The loss with one thing changed: what goes in, what is asked for, or what a row may see."""
    logits = model(letters, reads, mask(reads.shape[1]))
    options = {"ignore_index": pad_id, **options}
    return F.cross_entropy(logits.flatten(0, 1), answers.flatten(), **options)


def shifted_loss(model, letters, signs, pad_id, mask=causal_mask, **options):
    return loss_of(model, letters, signs[:, :-1], signs[:, 1:], pad_id, mask, **options)


@with_gradient
def training_step(model, letters, signs, pad_id):
    """letters (batch, source), signs (batch, target), both ids -> the loss, ()."""
    return shifted_loss(model, letters, signs, pad_id)


BANK = Bank.read(__file__, training_step, globals(), made=with_gradient)


def cases(numbers: Numbers) -> list[Case]:
    draw = numbers.sizes_from

    def case(pad_id: int) -> Case:
        start, end = draw.sample([i for i in range(1, VOCAB) if i != pad_id], 2)
        # Where padding has another id, 0 is a sign, and every answer begins with it.
        first, *others = (i for i in range(VOCAB) if i not in (pad_id, start, end))
        batch = draw.randrange(3, 6)
        source, target = draw.sample(range(6, 10), 2)
        lengths = [target, *(draw.randrange(4, target) for _ in range(batch - 1))]
        signs = torch.full((batch, target), pad_id)
        for row, length in zip(signs, lengths, strict=True):
            answer = [start, first, *draw.choices(others, k=length - 3), end]
            row[:length] = torch.tensor(answer)
        # No letter has the id of a sign, so that letters which are read as signs are noticed.
        letters = [draw.sample(range(VOCAB, LETTERS), source) for _ in range(batch)]
        inputs = {"model": Writer(numbers), "letters": torch.tensor(letters), "signs": signs}
        return Case({**inputs, "pad_id": pad_id}, unsaid=("model",))

    return [case(0), case(draw.randrange(1, VOCAB))]


TASK = Task(
    "training_step",
    training_step,
    BANK,
    cases,
    {"loss": "", "gradient": "parameters"},
    "Something in it is drawn at random, or the model is another one after the call. The training "
    "loop takes the step, `optimiser.step()`; your function computes the loss.",
)


def leak(function: Callable, case: Case) -> tuple[str, ...]:
    """Say which rows of logits move with the last sign that goes in, though they precede it."""
    model = case.inputs["model"]
    came = outcome(function, case.copies(), list(TASK.parts)).parts
    # Who calls the model once for each beginning reads its last rows alone, and needs no mask.
    if not came or len(model.asked) != 1:
        return ()
    letters, signs, mask = model.asked[0]
    other = signs.clone()
    other[:, -1] = (other[:, -1] + 1) % VOCAB
    still = close(model(letters, signs, mask), model(letters, other, mask))
    rows = (~still[:, :-1]).any(dim=-1).any(dim=0).nonzero().flatten().tolist()
    if not rows:
        return ()
    return (
        "The future leaks: change the last sign that goes in, and what comes before it moves as "
        f"well, rows {rows} of the logits.",
    )


def check_training_step(function: Callable, *, seed: int = 0) -> Result:
    """Check training_step(model, letters, signs, pad_id) -> loss, a single number with its graph.

    letters (batch, source) and signs (batch, target) are ids; signs are `<start>`, the answer and
    `<end>`, and padding behind it. `model(letters, signs, mask)` returns logits (batch, target,
    vocab), of which row i scores the sign after the i-th that went in; mask is boolean, (target,
    target), True where a sign may be seen. The loss is the mean cross-entropy of all signs after
    `<start>` that are no padding.
    """
    watched = with_gradient(function) if callable(function) else function
    result = examine(TASK, watched, seed)
    if result.passed:
        return replace(result, paragraphs=(*result.paragraphs, "The gradients are right too."))
    with aside():
        leaks = leak(watched, cases(Numbers(seed))[0])
    return replace(result, paragraphs=(*result.paragraphs, *leaks))
