"""check_remove_each (chapter 20): what a head's output loses with each key, and where that lies."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


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


@BANK.mistake(
    "The weights that are left no longer sum to 1. A head that never saw this key would have "
    "shared 1 among the others.",
    "Divide by the new sum of each row: `left / left.sum(dim=-1, keepdim=True)`.",
)
def not_shared_anew(weights, values):
    change = changes(weights, values, removed).norm(dim=-1)
    return change, agreement(change, weights)


@BANK.mistake(
    "The formula lacks its divisor. Without the key the weights that are left sum to 1 minus its "
    "weight, and no longer to 1.",
    "Divide by that sum: `weights / (1 - weights)` in the place of `weights`.",
)
def not_divided_by_the_rest(weights, values):
    apart = (values[:, None] - (weights @ values)[:, :, None]).norm(dim=-1)
    change = weights * apart
    return change, agreement(change, weights)


@BANK.mistake(
    "The softmax is taken a second time. A weight of 0 becomes e⁰ = 1 in it, so the key is back, "
    "and all weights are nearly equal.",
    "The weights are shares already: divide by their new sum.",
)
def softmax_again(weights, values):
    change = changes(weights, values, lambda w, key: removed(w, key).softmax(-1)).norm(dim=-1)
    return change, agreement(change, weights)


@BANK.mistake(
    "Every key that was removed stays removed: the copy is made once, before the loop. With the "
    "last key nothing is left, and 0 / 0 is NaN.",
    "Make the copy inside the loop: `left = weights.clone()` for each key.",
)
def one_copy_for_all(weights, values):
    def left_of(weights, key):
        left = weights * (torch.arange(weights.shape[-1]) > key)
        return left / left.sum(dim=-1, keepdim=True)

    change = changes(weights, values, left_of).norm(dim=-1)
    return change, agreement(change, weights)


@BANK.mistake(
    "A query's row is removed, not a key's column: what is asked, not what is looked at.",
    "Keys stand on the last axis: `left[:, :, key] = 0`.",
)
def a_row_removed(weights, values):
    output = weights @ values
    queries = range(weights.shape[1])
    apart = torch.stack([removed(weights.mT, query).mT @ values for query in queries], dim=2)
    return ((apart - output[:, :, None]).norm(dim=-1),)


@BANK.mistake(
    "The change is added up with its signs. A component that grows and one that shrinks cancel.",
    "Take the length of the change: `.norm(dim=-1)`.",
)
def signs_left_in(weights, values):
    change = changes(weights, values, shared_anew).sum(dim=-1)
    return change, agreement(change, weights)


@BANK.mistake(
    "This is the square of the length of the change.",
    "Take the root too: `.norm(dim=-1)` does both.",
)
def squared(weights, values):
    change = changes(weights, values, shared_anew).square().sum(dim=-1)
    return change, agreement(change, weights)


@BANK.mistake(
    "These are the changes of each component, with an axis d_value. One number for each key is "
    "asked for.",
    "Take the length along the last axis: `.norm(dim=-1)`.",
)
def each_component(weights, values):
    return (changes(weights, values, shared_anew).abs(),)


@BANK.mistake(
    "Here one key is kept and all others are removed. How far a value lies from the output says "
    "nothing about how much of it is in there.",
    "Set one weight to 0, and keep the others.",
)
def all_others_removed(weights, values):
    def left_of(weights, key):
        return (torch.arange(weights.shape[-1]) == key).expand_as(weights).to(weights.dtype)

    change = changes(weights, values, left_of).norm(dim=-1)
    return change, agreement(change, weights)


@BANK.mistake(
    "The changes are stacked along the first axis: (key, heads, query). Their largest along the "
    "last axis is then not that of a query's keys, and the shapes do not fit.",
    "Put the keys last: `torch.stack(change, dim=-1)`.",
)
def keys_stacked_first(weights, values):
    change = changes(weights, values, shared_anew).norm(dim=-1).movedim(-1, 0)
    return change, agreement(change, weights)


@BANK.mistake(
    "The changes are stacked along the axis of the queries: (heads, key, query). Their largest "
    "along the last axis is then not that of a query's keys, and the shapes do not fit.",
    "Put the keys last: `torch.stack(change, dim=-1)`.",
)
def keys_stacked_second(weights, values):
    change = changes(weights, values, shared_anew).norm(dim=-1).movedim(-1, 1)
    return change, agreement(change, weights)


@BANK.mistake(
    "The mean of True and False is taken. torch takes means of numbers only.",
    "Make numbers of them first: `.float().mean(dim=-1)`.",
)
def mean_of_booleans(weights, values):
    change, _ = remove_each(weights, values)
    return change, (change.argmax(-1) == weights.argmax(-1)).mean(-1)


@BANK.mistake(
    "The change is right, and the share asks of each key which query gives it most. The claim is "
    "about the row of a query.",
    "Look for the largest along the keys: `argmax(dim=-1)` for both.",
)
def largest_of_a_column(weights, values):
    change, _ = remove_each(weights, values)
    return change, (change.argmax(1) == weights.argmax(1)).float().mean(-1)


@BANK.mistake(
    "The change is right, and the share is averaged over the heads: a number for each query.",
    "Average over the queries, the last axis after `argmax`: `.mean(dim=-1)`.",
)
def averaged_over_the_heads(weights, values):
    change, _ = remove_each(weights, values)
    return change, (change.argmax(-1) == weights.argmax(-1)).float().mean(0)


@BANK.mistake(
    "The change is right, and the share is one number for all heads. A head of which the claim is "
    "true and one of which it is false would give it together.",
    "Average over the queries alone: `.mean(dim=-1)`.",
)
def averaged_over_everything(weights, values):
    change, _ = remove_each(weights, values)
    return change, (change.argmax(-1) == weights.argmax(-1)).float().mean()


@BANK.mistake(
    "The change is right, and the queries are counted, where a share of them is asked for.",
    "Divide by the number of queries, or take `.mean(dim=-1)` of the floats.",
)
def counted(weights, values):
    change, _ = remove_each(weights, values)
    return change, (change.argmax(-1) == weights.argmax(-1)).float().sum(-1)


@BANK.mistake(
    "The change is right, and the share compares sizes: a change and a weight are hardly ever the "
    "same number. The question is where they lie.",
    "Compare places: `change.argmax(dim=-1) == weights.argmax(dim=-1)`.",
)
def sizes_compared(weights, values):
    change, _ = remove_each(weights, values)
    return change, (change.amax(-1) == weights.amax(-1)).float().mean(-1)


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
