"""check_step_matrix (chapter 1): R_k, which takes PE(pos) to PE(pos + k) at every position."""

import math
from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
RIGHT_BLOCK = "`[[cos t, sin t], [-sin t, cos t]]`"
RIGHT_ANGLE = "`t = k / 10000 ** (column / d_model)` for `column` 0, 2, 4, …"


def slowness(d_model):
    """By what the position is divided, for each hand: (d_model / 2,)."""
    return 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def encoding(position, d_model):
    """PE of one position: (d_model,)."""
    angle = position / slowness(d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=1).flatten()


def turned(angles, *, below=-1):
    """The blocks of these angles on the diagonal, the sine below it times `below`."""
    rows = [[angles.cos(), angles.sin()], [below * angles.sin(), angles.cos()]]
    blocks = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
    return torch.block_diag(*blocks).to(torch.float32)


def step_matrix(k, d_model):
    """k steps, an even d_model -> (d_model, d_model)."""
    return turned(k / slowness(d_model))


def first_position(yours, right, inputs):
    """What becomes of PE(0) in its first two numbers."""
    start = encoding(0, inputs["d_model"])
    mine, due = ((m[0].double() @ start)[:2].tolist() for m in (yours, right))
    return (
        f"PE(0) becomes {mine[0]:.2f}, {mine[1]:.2f}, … with yours, and "
        f"PE({inputs['k']}) begins with {due[0]:.2f}, {due[1]:.2f}."
    )


@BANK.mistake(
    "This steps the other way: yours is the matrix of -k, which is also the transpose of the right "
    "one. Textbooks turn points (cos, sin), and here the sine stands first; or yours is for rows, "
    "`pe @ matrix`, and here PE(pos) is a column.",
    f"Let the minus stand below the diagonal, and k keep its sign: {RIGHT_BLOCK}.",
    first_position,
)
def transposed(k, d_model):
    return step_matrix(k, d_model).T.contiguous()


@BANK.mistake(
    "k has lost its sign: for a negative k yours is the matrix of -k, which steps forward.",
    "In the angle a negative k turns the hands back by itself, without `abs` and without a case of "
    f"its own: {RIGHT_ANGLE}.",
    first_position,
)
def sign_lost(k, d_model):
    return step_matrix(abs(k), d_model)


@BANK.mistake(
    "Both sines have the same sign, so that the blocks are no rotations: they change the length of "
    "what they turn.",
    f"cos(a + t) = cos a cos t - sin a sin t, hence the minus: {RIGHT_BLOCK}.",
)
def no_minus(k, d_model):
    return turned(k / slowness(d_model), below=1)


@BANK.mistake(
    "The hands turn at the wrong speeds: column 2i is divided by 10000^(i/d_model). The exponent "
    "counts columns, 0, 2, 4, …, and yours counts hands, 0, 1, 2, ….",
    f"Take the even columns: {RIGHT_ANGLE}.",
)
def hands_counted(k, d_model):
    return turned(k / slowness(d_model).sqrt())


@BANK.mistake(
    "The slowest hand is divided by 10000 itself, as where the exponents are spread from 0 to 1. "
    "Some libraries do that; the paper's exponent ends at (d_model - 2) / d_model.",
    f"Divide the column by d_model: {RIGHT_ANGLE}.",
)
def spread_to_the_end(k, d_model):
    hands = d_model // 2
    return turned(k / 10000 ** torch.linspace(0, 1, hands, dtype=torch.float64))


@BANK.mistake(
    "The first hand is divided by more than 1: your exponents begin with 2/d_model instead of 0.",
    f"Count from 0: {RIGHT_ANGLE}.",
)
def counted_from_one(k, d_model):
    return turned(k / (slowness(d_model) * 10000 ** (2 / d_model)))


@BANK.mistake(
    "Each hand is ten times slower than the one before it. That is so at d_model 8 alone: with "
    "more columns the speeds lie closer together, with fewer further apart.",
    f"Let the speed depend on d_model: {RIGHT_ANGLE}.",
)
def ten_times_slower(k, d_model):
    return turned(k / 10 ** torch.arange(d_model // 2, dtype=torch.float64))


@BANK.mistake(
    "The hands become faster from column to column, where they should become slower: the step is "
    "multiplied by 10000^(2i/d_model).",
    f"Divide by it: {RIGHT_ANGLE}.",
)
def multiplied(k, d_model):
    return turned(k * slowness(d_model))


@BANK.mistake(
    "All blocks turn by the same angle, that of the fast hand.",
    f"Each hand has its own angle: {RIGHT_ANGLE}.",
    lambda yours, right, inputs: (
        f"Your last block begins with {yours[0][-2, -2]:.2f}, and that of the slowest hand is "
        f"{right[0][-2, -2]:.2f}."
    ),
)
def one_speed(k, d_model):
    return turned(torch.full((d_model // 2,), float(k), dtype=torch.float64))


@BANK.mistake(
    "Yours is for a pattern with all sines in the first half of its columns and all cosines in the "
    "second. The chapter's has them in turn: sine, cosine, sine, cosine.",
    "Put a block of two rows and two columns on the diagonal for each hand: `torch.block_diag`.",
)
def halves(k, d_model):
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    return step_matrix(k, d_model)[order][:, order]


@BANK.mistake(
    "This is the identity: nothing turns, and PE(pos) stays where it is.",
    f"Each hand turns by an angle that k decides: {RIGHT_ANGLE}.",
)
def identity(k, d_model):
    return torch.eye(d_model)


@BANK.mistake(
    "k has no effect: this is the matrix of a single step.",
    f"A step of k turns each hand k times as far: {RIGHT_ANGLE}.",
)
def one_step(k, d_model):
    return step_matrix(1, d_model)


@BANK.mistake(
    "This is k times the matrix of one step. k steps are k products, one after the other, and "
    "what grows with k is the angle.",
    f"Put k into the angle: {RIGHT_ANGLE}.",
    first_position,
)
def k_times_one_step(k, d_model):
    return k * step_matrix(1, d_model)


@BANK.mistake(
    "The angles are converted as if they were degrees. The encoding counts in radians: the fast "
    "hand turns by 1 radian in a step.",
    "Leave the conversion out: `sin` and `cos` take radians.",
)
def degrees(k, d_model):
    return turned(k / slowness(d_model) * math.pi / 180)


@BANK.mistake(
    "PE(k) stands on the diagonal: each number is multiplied by one number, and no sine meets a "
    "cosine. A rotation mixes the two numbers of a hand.",
    f"Each hand needs a block of four: {RIGHT_BLOCK}.",
    first_position,
)
def encoding_on_the_diagonal(k, d_model):
    return encoding(k, d_model).diag().to(torch.float32)


@BANK.mistake(
    "This matrix takes PE(0) to PE(k), and no other position where it belongs. There are many such "
    "matrices; asked for is the one that serves every position.",
    f"Build it from the angle of each hand, in which no position stands: {RIGHT_BLOCK}.",
)
def from_position_zero(k, d_model):
    start = encoding(0, d_model)
    return (encoding(k, d_model).outer(start) / start.dot(start)).to(torch.float32)


@BANK.mistake(
    "This is the block of the fast hand alone, two by two.",
    "There are d_model / 2 hands, and each has its block on the diagonal: `torch.block_diag`.",
)
def fast_hand_only(k, d_model):
    return step_matrix(k, d_model)[:2, :2].clone()


@BANK.mistake(
    "The blocks lie one behind the other, (d_model / 2, 2, 2), and not on the diagonal of one "
    "matrix.",
    "`torch.block_diag(*blocks)` puts them there.",
)
def blocks_stacked(k, d_model):
    matrix = step_matrix(k, d_model)
    return torch.stack([matrix[i : i + 2, i : i + 2] for i in range(0, d_model, 2)])


def cases(numbers: Numbers) -> list[Case]:
    few, more = sorted(numbers.sizes(2, least=3))
    return [
        Case({"k": few, "d_model": 8}),
        Case({"k": 1, "d_model": 2 * more}),
        Case({"k": -1, "d_model": 8}),
        Case({"k": -more, "d_model": 2 * few}),
        Case({"k": 100, "d_model": 2 * few}),
    ]


TASK = Task("step_matrix", step_matrix, BANK, cases, {"result": "d_model d_model"})


def check_step_matrix(function: Callable, *, seed: int = 0) -> Result:
    """Check step_matrix(k, d_model): R_k, with PE(pos + k) = R_k PE(pos) at every position.

    k is a number of steps, negative for steps back; d_model is even. PE(pos) is a column with its
    sines at 0, 2, 4, … and its cosines at 1, 3, 5, …, as in chapter 1.
    """
    return examine(TASK, function, seed)
