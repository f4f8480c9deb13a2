"""check_rotate_head (chapter 10): the rows of one head, each turned by its position."""

from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def rotate_head(x, base=10000.0):
    """x (seq, d_key) -> (seq, d_key)."""
    return interleaved(*turned(*neighbours(x), angles(x, base)))


def angles(x: Tensor, base: float, first: int = 0) -> Tensor:
    """The angle m · θ of every row and pair, (seq, d_key/2)."""
    seq, d_key = x.shape
    theta = base ** (-torch.arange(0, d_key, 2) / d_key)
    return torch.arange(first, first + seq)[:, None] * theta


def neighbours(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[:, 0::2], x[:, 1::2]


def turned(a: Tensor, b: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    return a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()


def interleaved(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack((a, b), dim=-1).flatten(1)


BANK = Bank.read(__file__, rotate_head, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case(d_key: int, base: float) -> Case:
        seq = numbers.sizes_from.choice((5, 7, 9))
        return Case({"x": numbers.tensor(seq, d_key), "base": base})

    return [case(4, 10000.0), case(8, 100.0)]


TASK = Task("rotate_head", rotate_head, BANK, cases, {"turned": "seq d_key"})


def check_rotate_head(function: Callable, *, seed: int = 0) -> Result:
    """Check rotate_head(x, base) -> x, each row turned by its position.

    x (seq, d_key), the queries or the keys of one head -> (seq, d_key): components 2i and 2i + 1 of
    row m, a point in the plane, turned by m · base^(−2i/d_key) radians.
    """
    return examine(TASK, function, seed)
