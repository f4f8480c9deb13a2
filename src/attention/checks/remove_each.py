"""check_remove_each (chapter 20): what a head's output loses with each key, and where that lies."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def remove_each(weights, values):
    """weights (heads, query, key), values (heads, key, d_value) -> change, share."""
    # Without a key the others share 1 anew: the output moves away from its value by w / (1 - w).
    apart = (values[:, None] - (weights @ values)[:, :, None]).norm(dim=-1)  # (heads, query, key)
    change = weights / (1.0 - weights) * apart
    return change, agreement(change, weights)


def agreement(change, weights):
    """How often the key of largest change has the largest weight, (heads,)."""
    return (change.argmax(-1) == weights.argmax(-1)).float().mean(-1)


def changes(weights, values, left_of):
    """By how much the output changes if `left_of(weights, key)` takes the weights' place."""
    output = weights @ values
    keys = range(weights.shape[-1])
    without = torch.stack([left_of(weights, key) @ values for key in keys], dim=2)
    return without - output[:, :, None]  # (heads, query, key, d_value)


def removed(weights, key):
    """The weights with one key at 0."""
    return weights * (torch.arange(weights.shape[-1]) != key)


def shared_anew(weights, key):
    """The weights with one key at 0, and the others summing to 1."""
    left = removed(weights, key)
    return left / left.sum(dim=-1, keepdim=True)


BANK = Bank.read(__file__, remove_each, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        heads, queries, keys, d_value = numbers.sizes(4, least=3)
        weights = numbers.tensor(heads, queries, keys).softmax(dim=-1)
        return Case({"weights": weights, "values": numbers.tensor(heads, keys, d_value)})

    return [case(), case()]


TASK = Task(
    "remove_each", remove_each, BANK, cases, {"change": "heads query key", "share": "heads"}
)


def check_remove_each(function: Callable, *, seed: int = 0) -> Result:
    """Check remove_each(weights, values) -> (change, share).

    weights (heads, query, key), all below 1, values (heads, key, d_value). change (heads, query,
    key): by how much a query's output changes, as a length, if one key gets weight 0 and the
    others share 1.
    share (heads,): of how many queries the largest change comes from the key of largest weight.
    """
    return examine(TASK, function, seed)
