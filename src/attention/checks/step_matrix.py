"""check_step_matrix (chapter 1): R_k, which takes PE(pos) to PE(pos + k) at every position."""

import math  # noqa: F401 - rows use it
from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


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


BANK = Bank.read(__file__, step_matrix, globals())


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
