"""check_merge_heads (chapter 6): (batch, heads, seq, d_key) -> (batch, seq, d_model)."""

from collections.abc import Callable

import torch  # noqa: F401 - rows use it

from attention.heads import merge_heads

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def row_of(yours, right, inputs):
    """Whose numbers stand in the row of token 0, for mistakes that only move numbers."""
    x = inputs["x"][0]
    places = [(x == number).nonzero()[0].tolist() for number in yours[0][0, 0].tolist()]
    heads = sorted({head for head, _, _ in places})
    tokens = sorted({token for _, token, _ in places})
    return (
        f"Your row for token 0 holds numbers of {named('token', tokens)}, from "
        f"{named('head', heads)}; it must hold token 0's, from every head."
    )


def named(noun: str, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    return f"{noun}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


BANK = Bank.read(__file__, merge_heads, globals())


def cases(numbers: Numbers) -> list[Case]:
    shapes = [numbers.sizes(4), numbers.sizes(4), [1, *numbers.sizes(3)]]
    return [Case({"x": numbers.tensor(*shape)}) for shape in shapes]


TASK = Task("merge_heads", merge_heads, BANK, cases, {"result": "batch seq d_model"})


def check_merge_heads(function: Callable, *, seed: int = 0) -> Result:
    """Check merge_heads(x): x (batch, heads, seq, d_key) -> (batch, seq, heads · d_key)."""
    return examine(TASK, function, seed)
