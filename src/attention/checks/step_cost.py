"""check_step_cost (chapter 14): what it takes a layer to write one token more, with a cache."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def step_cost(n, d_model, n_heads, d_ff):
    """Four sizes -> (4,): projections, scores and sums, feed-forward, and numbers kept."""
    return parts(n, d_model, d_ff)


def parts(n, d_model, d_ff, **changed):
    """The four numbers, of which a mistake changes some."""
    right = {
        "projections": 4 * d_model**2,
        "pairs": 2 * n * d_model,
        "feed_forward": 2 * d_model * d_ff,
        "kept": 2 * n * d_model,
    }
    return torch.tensor(list((right | changed).values()))


BANK = Bank.read(__file__, step_cost, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        n_heads, d_key, wide, long = numbers.sizes(4, least=3)
        sizes = {"n": 10 * long + 1, "d_model": n_heads * d_key, "n_heads": n_heads}
        return Case({**sizes, "d_ff": 10 * wide})

    return [case(), case()]


TASK = Task("step_cost", step_cost, BANK, cases, {"counts": "part"})


def check_step_cost(function: Callable, *, seed: int = 0) -> Result:
    """Check step_cost(n, d_model, n_heads, d_ff) -> counts.

    With n - 1 tokens in its cache a layer writes one token more. counts (4,): the multiply-adds of
    the four projections, of the scores and weighted sums, and of the feed-forward layer, and then
    how many numbers the cache holds.
    """
    return examine(TASK, function, seed)
