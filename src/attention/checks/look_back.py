"""check_look_back (chapter 2): two matrices with which each position attends to the one before.

Many pairs of matrices do it, so no numbers are compared with the right ones. Attention is computed
with the learner's pair, and what counts is where each row looks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention.dot_product import scaled_dot_product_attention
from attention.embedding import SinusoidalPositionalEncoding

from .bank import Bank, Mistake
from .examining import CHANGING, FLOAT64, Task
from .inputs import Case, Numbers
from .result import Result
from .running import Outcome, about_error, aside, learners_outcome

LEAST = 0.9  # of a row's weight, on the position before
LOUD = 1000.0

Pair = tuple[Tensor, Tensor]


def slowness(d_model: int) -> Tensor:
    """By what the position is divided, for each hand: (d_model / 2,)."""
    return 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def turned(angles: Tensor, *, below: int = -1) -> Tensor:
    """w with PE(pos) @ w turned back by an angle for each hand; the sine below times `below`."""
    rows = [[angles.cos(), angles.sin()], [below * angles.sin(), angles.cos()]]
    blocks = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
    return torch.block_diag(*blocks).to(torch.float32)


def loud(w_q: Tensor) -> Pair:
    """This w_q, sharpened, and keys that are the encodings themselves."""
    return LOUD * w_q, torch.eye(len(w_q))


def look_back(d_model: int) -> Pair:
    """d_model, even -> w_q, w_k, both (d_model, d_model)."""
    return loud(turned(1 / slowness(d_model)))


BANK = Bank.read(__file__, look_back, globals())


@dataclass(frozen=True)
class Positions(Case):
    """A d_model for the learner's function, and how many positions attend with its matrices."""

    length: int = 0

    def __str__(self) -> str:
        return f"d_model={self.inputs['d_model']} and {self.length} positions"


def cases(numbers: Numbers) -> list[Positions]:
    few, more = sorted(numbers.sizes(2, least=3))
    sizes = [(8, 6), (4, 9 + few), (2 * more, 48 + more), (32, 20 + few)]
    return [Positions({"d_model": d_model}, length=length) for d_model, length in sizes]


TASK = Task(
    "look_back", look_back, BANK, cases, {"w_q": "d_model d_model", "w_k": "d_model d_model"}
)


def attended(pair: Pair, case: Positions) -> Tensor:
    """The weights of one head whose X is the positional encoding: (query, key)."""
    d_model = case.inputs["d_model"]
    x = SinusoidalPositionalEncoding(d_model, case.length).table.double()  # (seq, d_model)
    w_q, w_k = (w.double() for w in pair)
    return scaled_dot_product_attention(x @ w_q, x @ w_k, x)[1]


def unfit(pair: tuple[Tensor, ...], case: Positions) -> str:
    """Say what hinders attention with these matrices; nothing where they fit."""
    due = (case.inputs["d_model"],) * 2
    for name, w in zip(TASK.parts, pair, strict=False):
        if w.shape != due:
            return (
                f"the shape of your {name} is {tuple(w.shape)}, expected is {due} = "
                "(d_model, d_model)."
            )
        if not w.is_floating_point():
            kind = str(w.dtype).removeprefix("torch.")
            return f"the dtype of your {name} is {kind}, expected is float32."
        if not w.isfinite().all():
            return f"your {name} holds NaN or infinity."
    if len(pair) < 2:
        return "one matrix came back, and two are expected: `return w_q, w_k`."
    return ""


def looks(pair: tuple[Tensor, ...], case: Positions) -> object:
    """Where the rows look: what two versions of one mistake share, whatever their factors."""
    if unfit(pair, case):
        return tuple(tuple(w.shape) for w in pair)
    weights = attended(pair, case)
    if weights.amax() - weights.amin() < 1e-6:
        return "everywhere"
    hands = pair[0].double() @ pair[1].double().T
    first_hand_only = hands[:2, :2].abs().sum() > (1 - 1e-6) * hands.abs().sum()
    steps = (weights.argmax(dim=-1) - torch.arange(case.length))[1:]
    common = steps.mode().values
    # One that looks ahead finds nothing there in its last row.
    if common != -1 and (steps == common).double().mean() >= 0.75:
        return common.item(), bool(first_hand_only)
    return tuple(steps.tolist()), bool(first_hand_only)


def first_failure(weights: Tensor) -> int | None:
    """The first row, of those that have a row before them, with too little weight on it."""
    rows = (weights.diagonal(-1) < LEAST).nonzero()
    return 1 + int(rows[0]) if len(rows) else None


def told(weights: Tensor, row: int) -> str:
    """What a row gives to the position before it, and to the best of the others."""
    due = weights[row, row - 1].item()
    others = weights[row].clone()
    others[row - 1] = -1
    other = int(others.argmax())
    return (
        f"row {row} gives {in_hundredths(due)} of its weight to position {row - 1}, the one before "
        f"it, and {in_hundredths(others[other].item())} to position {other}. Every row from 1 on "
        f"must give at least {LEAST:.2f} to the position before it."
    )


def in_hundredths(share: float) -> str:
    """Rounded down, so that 0.899 is less than 0.90."""
    return f"{math.floor(100 * share + 1e-9) / 100:.2f}"


def check_look_back(function: Callable, *, seed: int = 0) -> Result:
    """Check look_back(d_model) -> w_q, w_k, with which each position attends to the one before.

    d_model is even, both matrices are (d_model, d_model) and multiply from the right, x @ w. X is
    the positional encoding alone, there is one head, and scores are divided by √d_model. Every row
    from 1 on must give at least 0.9 of its weight to the position before it.
    """
    check = f"check_{TASK.name}"
    if not callable(function):
        way_out = f"Give it the function itself, without calling it: `{check}({TASK.name})`."
        return Result(check, False, (f"This is a {type(function).__name__}. {way_out}",))

    def as_tuple(d_model):
        pair = function(d_model)
        listed = isinstance(pair, list) and all(isinstance(w, Tensor) for w in pair)
        return tuple(pair) if listed else pair

    with aside():
        tried = []
        for case in TASK.cases(Numbers(seed)):
            yours = learners_outcome(as_tuple, case, list(TASK.parts), CHANGING)
            if not yours.parts:
                return Result(check, False, hindrance(yours, case))
            tried.append((case, yours.parts))
        return verdict(check, tried)


def hindrance(yours: Outcome, case: Positions) -> tuple[str, ...]:
    """What to say where no matrices came back."""
    if yours.message:
        return (yours.message,)
    return about_error(yours.error), f"That was with d_model={case.inputs['d_model']}."


def verdict(check: str, tried: list[tuple[Positions, tuple[Tensor, ...]]]) -> Result:
    """Look where the rows of every case look, and explain the first failure."""
    least = 1.0
    for case, pair in tried:
        if problem := unfit(pair, case):
            where = f"With d_model={case.inputs['d_model']}: {problem}"
        else:
            weights = attended(pair, case)
            row = first_failure(weights)
            least = min(least, weights.diagonal(-1).min().item())
            where = "" if row is None else f"With {case}: {told(weights, row)}"
        if where:
            named = mistakes_of(tried, case, pair)
            paragraphs = [f"{mistake.why} {mistake.way_out}" for mistake in named]
            if len(named) > 1:
                paragraphs.insert(
                    0, f"{len(named)} mistakes have this outcome; one of them may be yours."
                )
            names = tuple(mistake.name for mistake in named)
            return Result(check, False, (*paragraphs, where), names)
    said = (
        f"{len(tried)} pairs of a d_model and a length, and every row from 1 on gives at least "
        f"{in_hundredths(least)} of its weight to the position before it."
    )
    doubles = any(w.dtype == torch.float64 for _, pair in tried for w in pair)
    return Result(check, True, (said, FLOAT64) if doubles else (said,))


def mistakes_of(tried: list, case: Positions, pair: tuple[Tensor, ...]) -> list[Mistake]:
    """The mistakes that look where the learner looks, in all cases or else in the one that failed.

    One that agrees in the failed case alone must fail there too.
    """

    def agrees(mistake: Mistake, case: Positions, pair: tuple[Tensor, ...]) -> bool:
        return looks(mistake(case.inputs["d_model"]), case) == looks(pair, case)

    def fails(mistake: Mistake) -> bool:
        its = mistake(case.inputs["d_model"])
        return bool(unfit(its, case)) or first_failure(attended(its, case)) is not None

    everywhere = [m for m in BANK if all(agrees(m, *one) for one in tried)]
    return everywhere or [m for m in BANK if agrees(m, case, pair) and fails(m)]
