"""check_projection (chapter 2): x @ w + b."""

from collections.abc import Callable

import torch  # noqa: F401 - rows use it

from .bank import Bank
from .examining import CHANGING, Task, examine
from .inputs import Case, Numbers
from .result import Result


def projection(x, w, b=None):
    """x (batch, seq, d_in), w (d_in, d_out), b (d_out) or None -> (batch, seq, d_out)."""
    return x @ w if b is None else x @ w + b


def ratio(yours, right, inputs):
    return f"Your first number is {yours[0][0, 0, 0]:.2f} instead of {right[0][0, 0, 0]:.2f}."


def missing_bias(yours, right, inputs):
    missing = (right[0] - yours[0])[0, 0, 0]
    return f"In every row the right first number is yours plus {missing:.2f}, which is b[0]."


BANK = Bank.read(__file__, projection, globals())


def cases(numbers: Numbers) -> list[Case]:
    batch, seq, d_model = numbers.sizes(3)
    # A square w, as the book's are: a wrong transpose raises no error here.
    square = {"x": numbers.tensor(batch, seq, d_model), "w": numbers.tensor(d_model, d_model)}
    batch, seq, d_in, d_out = numbers.sizes(4)
    wide = {"x": numbers.tensor(batch, seq, d_in), "w": numbers.tensor(d_in, d_out)}
    return [
        Case({**square, "b": numbers.tensor(d_model)}),
        Case({**wide, "b": numbers.tensor(d_out)}),
        Case({**wide, "b": None}),
        Case({**wide, "x": numbers.tensor(1, seq, d_in), "b": numbers.tensor(d_out)}),
    ]


TASK = Task(
    "projection",
    projection,
    BANK,
    cases,
    {"result": "batch seq d_out"},
    f"{CHANGING} Here w and b hold all the weights there are: make no `nn.Linear` inside.",
)


def check_projection(function: Callable, *, seed: int = 0) -> Result:
    """Check projection(x, w, b=None): every token's row times w, plus b.

    x (batch, seq, d_in), w (d_in, d_out), b (d_out) or None -> (batch, seq, d_out). The matrix is
    as in chapter 2, one column for each number that comes out, and not transposed as in nn.Linear.
    """
    return examine(TASK, function, seed)
