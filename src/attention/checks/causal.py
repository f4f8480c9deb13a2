"""check_causal_mask (chapter 5): (query, key), True where a key is not in the query's future."""

import math  # noqa: F401 - rows use it
from collections.abc import Callable

import torch

from attention.masks import causal_mask

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def shifted(n_queries, n_keys, by):
    """The causal mask with its diagonal moved `by` keys into the future."""
    n_keys = n_queries if n_keys is None else n_keys
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries + by)


def last_query(yours, right, inputs):
    """What the last query sees, which must be every key."""
    return f"Your last query sees {int(yours[0][-1].sum())} of {yours[0].shape[1]} keys."


def pairs(yours, right, inputs):
    return (
        f"Yours allows {int(yours[0].sum())} pairs of a query and a key, and should allow "
        f"{int(right[0].sum())}."
    )


BANK = Bank.read(__file__, causal_mask, globals())


def cases(numbers: Numbers) -> list[Case]:
    alone = numbers.sizes(1, least=3)[0]
    fewer, more = sorted(numbers.sizes(2, least=3))
    return [
        Case({"n_queries": alone, "n_keys": None}),
        Case({"n_queries": fewer, "n_keys": more}),
        Case({"n_queries": 1, "n_keys": more}),
        Case({"n_queries": more, "n_keys": fewer}),
    ]


TASK = Task("causal_mask", causal_mask, BANK, cases, {"mask": "query key"})


def check_causal_mask(function: Callable, *, seed: int = 0) -> Result:
    """Check causal_mask(n_queries, n_keys=None): a boolean mask of shape (query, key)."""
    return examine(TASK, function, seed)
