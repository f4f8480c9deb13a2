"""check_split_heads (chapter 3): (batch, seq, d_model) -> (batch, heads, seq, d_key)."""

from collections.abc import Callable

import torch  # noqa: F401 - rows use it

from attention.heads import split_heads

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def row_of_head_0(yours, right, inputs):
    """Where in x a row of head 0 comes from, for mistakes that only move numbers."""
    places = [(inputs["x"][0] == number).nonzero()[0].tolist() for number in yours[0][0, 0, 1]]
    row = ", ".join(f"x[0, {token}, {column}]" for token, column in places)
    return f"Your row [0, 0, 1], head 0 of token 1, holds {row}."


BANK = Bank.read(__file__, split_heads, globals())


def cases(numbers: Numbers) -> list[Case]:
    batch, seq, n_heads, d_key = numbers.sizes(4)
    other_batch, many_heads, other_d_key = numbers.sizes(3, least=3)

    def case(batch, seq, n_heads, d_key):
        return Case({"x": numbers.tensor(batch, seq, n_heads * d_key), "n_heads": n_heads})

    return [
        case(batch, seq, n_heads, d_key),
        # Twice as many tokens as heads: here cutting the tokens raises no error.
        case(other_batch, 2 * many_heads, many_heads, other_d_key),
        case(1, seq, n_heads, d_key),
    ]


TASK = Task("split_heads", split_heads, BANK, cases, {"result": "batch heads seq d_key"})


def check_split_heads(function: Callable, *, seed: int = 0) -> Result:
    """Check split_heads(x, n_heads): x (batch, seq, d_model) -> (batch, n_heads, seq, d_key)."""
    return examine(TASK, function, seed)
