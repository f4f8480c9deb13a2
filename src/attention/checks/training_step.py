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

BANK = Bank()
VOCAB = 11  # signs that the check's models know
LETTERS = 30
D_MODEL = 8
LONGEST = 12
RIGHT_MASK = "`causal_mask(n)` for n signs that go in: True on the diagonal and below it"
RIGHT_SHIFT = "`signs[:, :-1]` goes in, and `signs[:, 1:]` is the answer."
LEFT_OUT = "`F.cross_entropy(…, ignore_index=pad_id)` leaves them out, of the sum and of the count."


class Writer(nn.Module):
    """A decoder of one head, small enough to be drawn anew for each case."""

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


def mistake(why: str, way_out: str) -> Callable:
    """`BANK.mistake`, of a function that returns its loss alone."""
    return lambda function: BANK.mistake(why, way_out)(with_gradient(function))


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


@mistake(
    "There is no causal mask: every row reads the sign that it is asked for. The model learns to "
    "copy it, the loss falls to nearly nothing, and what it writes by itself is nonsense.",
    f"Hand the model a mask, {RIGHT_MASK}.",
)
def no_mask(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id, lambda n: None)


@mistake(
    "The mask is the other way round: it says True where a sign is hidden, as `nn.Transformer` "
    "wants it. This model, as all of the book's, wants True where a sign may be seen. So each row "
    "sees the future alone.",
    f"Leave out the `~`, or take `tril` and not `triu`: {RIGHT_MASK}.",
)
def inverted(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id, lambda n: ~causal_mask(n))


@mistake(
    "The mask is transposed: each row sees itself and what comes after it.",
    f"Take `tril`, which keeps what stands below the diagonal: {RIGHT_MASK}.",
)
def transposed(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id, lambda n: causal_mask(n).T)


@mistake(
    "The mask hides from each row the sign that stands at its own place. That sign is no answer: "
    "the shift has put the one before there. The first row sees nothing at all.",
    f"Keep the diagonal, with `tril()` or `<=`: {RIGHT_MASK}.",
)
def without_itself(model, letters, signs, pad_id):
    def mask(n):
        return torch.ones(n, n, dtype=torch.bool).tril(-1)

    return shifted_loss(model, letters, signs, pad_id, mask)


@mistake(
    "The mask lets each row see one sign ahead. That is the very sign it is asked for, since the "
    "answer is shifted already.",
    f"Leave out `diagonal=1`. What is wanted is {RIGHT_MASK}.",
)
def one_ahead(model, letters, signs, pad_id):
    def mask(n):
        return torch.ones(n, n, dtype=torch.bool).tril(1)

    return shifted_loss(model, letters, signs, pad_id, mask)


@mistake(
    "The mask holds 0 and -∞, to be added to the scores. Some of torch's modules take that; this "
    "model takes a boolean mask.",
    f"Make it boolean: {RIGHT_MASK}.",
)
def mask_to_be_added(model, letters, signs, pad_id):
    def mask(n):
        return torch.full((n, n), -torch.inf).triu(1)

    return shifted_loss(model, letters, signs, pad_id, mask)


@mistake(
    "The mask has a row and a column too many: it is made for all of `signs`, and one sign fewer "
    "goes in.",
    "Make it as long as what goes in: `causal_mask(signs.shape[1] - 1)`.",
)
def mask_too_long(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id, lambda n: causal_mask(n + 1))


@mistake(
    "The answer is not shifted: each row is asked for the sign that it has read at its own place. "
    "The mask hides nothing of that, so the model learns to repeat.",
    f"Each row is asked for the next sign: {RIGHT_SHIFT}",
)
def not_shifted(model, letters, signs, pad_id):
    return loss_of(model, letters, signs[:, :-1], signs[:, :-1], pad_id)


@mistake(
    "Nothing is shifted: all of `signs` goes in, and all of it is the answer. Each row is asked "
    "for the sign that it has read at its own place, and the model learns to repeat.",
    f"Each row is asked for the next sign: {RIGHT_SHIFT}",
)
def whole_not_shifted(model, letters, signs, pad_id):
    return loss_of(model, letters, signs, signs, pad_id)


@mistake(
    "The shift goes the wrong way: each row is asked for the sign before the one that it reads, "
    "and the first one for `<start>`.",
    f"Change the two: {RIGHT_SHIFT}",
)
def shifted_the_wrong_way(model, letters, signs, pad_id):
    return loss_of(model, letters, signs[:, 1:], signs[:, :-1], pad_id)


@mistake(
    "The shift is made twice: each row is asked for the sign after the next, and nobody is asked "
    "for the first.",
    f"Once is enough: {RIGHT_SHIFT}",
)
def shifted_twice(model, letters, signs, pad_id):
    return loss_of(model, letters, signs[:, :-2], signs[:, 2:], pad_id)


@mistake(
    "`roll` moves the first sign to the end: the last row is asked for `<start>`.",
    f"Cut, where you roll: {RIGHT_SHIFT}",
)
def rolled(model, letters, signs, pad_id):
    return loss_of(model, letters, signs, signs.roll(-1, dims=1), pad_id)


@mistake(
    "All of `signs` goes in and makes a row for each, the last one too. After the last sign "
    "nothing is left to ask for, so there is a row more than there are answers.",
    f"Leave the last sign out of what goes in: {RIGHT_SHIFT}",
)
def a_row_too_many(model, letters, signs, pad_id):
    return loss_of(model, letters, signs, signs[:, 1:], pad_id)


@mistake(
    "Padding counts as an answer: the model is taught to write padding after `<end>`, and short "
    "answers weigh as much as long ones.",
    LEFT_OUT,
)
def padding_counted(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id, ignore_index=-100)


@mistake(
    "The id 0 is taken for padding. It is in this book's vocabularies, and in others it is a sign "
    "like any other.",
    "Take the argument: `ignore_index=pad_id`.",
)
def zero_left_out(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id, ignore_index=0)


@mistake(
    "The losses of padding are 0, and still counted: the sum is divided by all places. A batch "
    "with much padding then has a small loss and a small gradient.",
    "Divide by how many answers are no padding: `(answers != pad_id).sum()`. Or " + LEFT_OUT,
)
def mean_over_padding(model, letters, signs, pad_id):
    total = shifted_loss(model, letters, signs, pad_id, reduction="sum")
    return total / signs[:, 1:].numel()


@mistake(
    "Each date is averaged by itself, and then these averages are. A sign of a short answer weighs "
    "more than one of a long answer.",
    "Take one mean over all signs of the batch that are no padding.",
)
def mean_of_means(model, letters, signs, pad_id):
    each = [(letters[i : i + 1], signs[i : i + 1]) for i in range(len(signs))]
    return torch.stack([shifted_loss(model, *one, pad_id) for one in each]).mean()


@mistake(
    "`F.cross_entropy` looks for the scores of the signs on axis 1, and in (batch, target, vocab) "
    "they stand on axis 2.",
    "Make one long list of rows, `logits.flatten(0, 1)` with `answers.flatten()`, or move the "
    "axis: `logits.transpose(1, 2)`.",
)
def not_flattened(model, letters, signs, pad_id):
    logits = model(letters, signs[:, :-1], causal_mask(signs.shape[1] - 1))
    return F.cross_entropy(logits, signs[:, 1:], ignore_index=pad_id)


@mistake(
    "The softmax is taken twice: `F.cross_entropy` takes it of what it gets. Probabilities lie "
    "between 0 and 1, so that as scores they can hardly differ, and the loss stays high.",
    "Give it the logits as they are.",
)
def softmax_first(model, letters, signs, pad_id):
    logits = model(letters, signs[:, :-1], causal_mask(signs.shape[1] - 1))
    rows = logits.softmax(dim=-1).flatten(0, 1)
    return F.cross_entropy(rows, signs[:, 1:].flatten(), ignore_index=pad_id)


@mistake(
    "These losses are added up. With twice as many dates in the batch the gradient is twice as "
    "large, and the learning rate fits one size of batch alone.",
    "Take the mean, which is what `F.cross_entropy` does by itself.",
)
def summed(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id, reduction="sum")


@mistake(
    "There is a loss for each row. `backward()` starts from a single number.",
    "Take the mean over all answers that are no padding, which `F.cross_entropy` does without "
    '`reduction="none"`.',
)
def not_averaged(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id, reduction="none")


@mistake(
    "The letters go in where the decoder reads signs. The check's letters have ids that no sign "
    "has.",
    "The letters come first, for the encoder: `model(letters, signs[:, :-1], mask)`.",
)
def letters_as_signs(model, letters, signs, pad_id):
    return loss_of(model, signs, letters[:, :-1], letters[:, 1:], pad_id)


@mistake(
    "Only the last row is asked. Writing needs no other, and training gives away all the questions "
    "that the same pass has answered: with the causal mask each row is a question of its own.",
    "Compare all rows: `logits.flatten(0, 1)` with `signs[:, 1:].flatten()`.",
)
def last_row_alone(model, letters, signs, pad_id):
    logits = model(letters, signs[:, :-1], causal_mask(signs.shape[1] - 1))
    return F.cross_entropy(logits[:, -1], signs[:, -1], ignore_index=pad_id)


@mistake(
    "The number is right, and no gradient comes of it: something cuts the way back to the "
    "parameters. Such a loss can be printed, and nothing can be learned from it.",
    "Return the loss itself, without `.item()`, `.detach()`, `float(…)` or `torch.no_grad()`. The "
    "training loop takes `.item()` where it prints.",
)
def detached(model, letters, signs, pad_id):
    return shifted_loss(model, letters, signs, pad_id).item()


@mistake(
    "`backward()` is called in it, and that uses up the graph. The training loop calls it on the "
    "loss that you return, once, after it has set the old gradients to zero.",
    "Leave `backward()` to the loop: return the loss.",
)
def backward_called(model, letters, signs, pad_id):
    loss = shifted_loss(model, letters, signs, pad_id)
    loss.backward()
    return loss


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
