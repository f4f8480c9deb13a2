"""check_join_parts (chapter 16): two partial results of a softmax, joined to one."""

from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def join_parts(max_a, sum_a, out_a, max_b, sum_b, out_b):
    """max and sum (query,), out (query, d_value) of two parts -> the same three of both."""
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    return maximum, a + b, average(a, out_a, b, out_b)


def rescaled(
    max_a: Tensor, sum_a: Tensor, max_b: Tensor, sum_b: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The larger maximum, and both sums relative to it."""
    factor_a, factor_b = factors(max_a, max_b)
    return torch.maximum(max_a, max_b), sum_a * factor_a, sum_b * factor_b


def factors(max_a: Tensor, max_b: Tensor) -> tuple[Tensor, Tensor]:
    """What makes the numbers of each part relative to the larger maximum."""
    reference = finite(torch.maximum(max_a, max_b))
    return (max_a - reference).exp(), (max_b - reference).exp()


def finite(maximum: Tensor) -> Tensor:
    """0 where nothing was visible: -inf - (-inf) would be NaN."""
    return maximum.masked_fill(maximum == -torch.inf, 0.0)


def average(a: Tensor, out_a: Tensor, b: Tensor, out_b: Tensor) -> Tensor:
    """The outputs, weighted by a and b; 0 where both are 0."""
    return weighted_sum(a, out_a, b, out_b) / divisor(a + b)[:, None]


def weighted_sum(a: Tensor, out_a: Tensor, b: Tensor, out_b: Tensor) -> Tensor:
    return a[:, None] * out_a + b[:, None] * out_b


def divisor(total: Tensor) -> Tensor:
    return total.masked_fill(total == 0.0, 1.0)


def neither_may_grow(yours, right, inputs):
    if len(yours) == 1:
        return "Neither sum may grow."
    return (
        f"Your sum of row 0 is {yours[1][0]:.2f}; the two sums that it is made of are "
        f"{inputs['sum_a'][0]:.2f} and {inputs['sum_b'][0]:.2f}, and neither may grow."
    )


BANK = Bank.read(__file__, join_parts, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case(*, hidden: bool) -> Case:
        queries, d_value = numbers.sizes(2, least=3)
        parts = {}
        for part in "ab":
            parts |= {
                f"max_{part}": 2 * numbers.tensor(queries),
                f"sum_{part}": 1 + numbers.tensor(queries).abs(),  # the largest weighs 1
                f"out_{part}": numbers.tensor(queries, d_value),
            }
        if hidden:  # nothing of part a to query 0, nothing of part b to 1, nothing at all to 2
            for part, rows in (("a", [0, 2]), ("b", [1, 2])):
                parts[f"max_{part}"][rows] = -torch.inf
                parts[f"sum_{part}"][rows] = 0.0
                parts[f"out_{part}"][rows] = 0.0
        return Case(parts)

    drawn = [case(hidden=False), case(hidden=True), case(hidden=False)]
    drawn[2].inputs["out_a"][0, 0] = torch.nan  # of a value that was NaN
    return drawn


TASK = Task(
    "join_parts",
    join_parts,
    BANK,
    cases,
    {"maximum": "query", "total": "query", "output": "query d_value"},
)


def check_join_parts(function: Callable, *, seed: int = 0) -> Result:
    """Check join_parts(max_a, sum_a, out_a, max_b, sum_b, out_b) -> (maximum, total, output).

    Each part has seen some of the keys. max (query,) is its largest score, sum (query,) the sum of
    its exp(score − max), out (query, d_value) its own attention output. A part that shows a query
    no key has max −inf, sum 0 and out 0 there. Returned are the same three of all keys.
    """
    return examine(TASK, function, seed)
