"""check_pool_heads (chapter 15): the heads of keys or values, averaged in groups."""

from collections.abc import Callable

from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def pool_heads(weight, n_heads, n_kv_heads):
    """weight (n_heads · d_key, d_in) -> (n_kv_heads · d_key, d_in)."""
    return by_group(weight, n_heads, n_kv_heads).mean(dim=1).flatten(0, 1)


def by_group(weight: Tensor, n_heads: int, n_kv_heads: int) -> Tensor:
    """The rows apart, (kv_heads, group, d_key, d_in)."""
    return weight.unflatten(0, (n_kv_heads, n_heads // n_kv_heads, len(weight) // n_heads))


@BANK.mistake(
    "Your groups take every n-th head. A group is made of consecutive heads: that is how grouped "
    "attention gives key heads to query heads, and with your groups most query heads would meet "
    "a mean to which their own head does not belong.",
    "Let the groups stand in front, (n_kv_heads, group, d_key, d_in), and average over axis 1.",
    lambda yours, right, inputs: (
        f"With n_heads={inputs['n_heads']} and n_kv_heads={inputs['n_kv_heads']} the first group "
        f"is heads 0 to {inputs['n_heads'] // inputs['n_kv_heads'] - 1}; yours is heads 0, "
        f"{inputs['n_kv_heads']} and so on."
    ),
)
def interleaved_groups(weight, n_heads, n_kv_heads):
    group, d_key = n_heads // n_kv_heads, len(weight) // n_heads
    return weight.unflatten(0, (group, n_kv_heads, d_key)).mean(dim=0).flatten(0, 1)


@BANK.mistake(
    "These are sums, not means. Every score would be about as many times too large as a group has "
    "heads, and so would every value.",
    "Take `.mean` in place of `.sum`.",
)
def summed(weight, n_heads, n_kv_heads):
    return by_group(weight, n_heads, n_kv_heads).sum(dim=1).flatten(0, 1)


@BANK.mistake(
    "This keeps the first head of each group and drops the others.",
    "Average over the heads of a group: `.mean(dim=1)` in place of `[:, 0]`.",
)
def the_first_of_each_group(weight, n_heads, n_kv_heads):
    return by_group(weight, n_heads, n_kv_heads)[:, 0].flatten(0, 1)


@BANK.mistake(
    "This keeps the first n_kv_heads heads and drops the others.",
    "Take the rows apart into (n_kv_heads, group, d_key, d_in), and average over axis 1.",
)
def the_first_heads(weight, n_heads, n_kv_heads):
    return weight[: n_kv_heads * (len(weight) // n_heads)]


@BANK.mistake(
    "You average neighbouring rows. They belong to one head, and are different components of its "
    "key: component 0 would be mixed with component 1, and no head with another.",
    "Average row i of a head with row i of the others in its group: the axis of the group stands "
    "in front of the axis d_key.",
)
def rows_inside_a_head(weight, n_heads, n_kv_heads):
    return weight.unflatten(0, (-1, n_heads // n_kv_heads)).mean(dim=1)


@BANK.mistake(
    "The average runs over d_key: one row is left of each head, and the heads are as many as "
    "before.",
    "Average over the heads of a group, axis 1 of (n_kv_heads, group, d_key, d_in).",
)
def over_the_width_of_a_head(weight, n_heads, n_kv_heads):
    return by_group(weight, n_heads, n_kv_heads).mean(dim=2).flatten(0, 1)


@BANK.mistake(
    "You average all rows of a group. That mixes the heads, as it should, and the components of a "
    "head too: one row is left of each group, where a head has d_key.",
    "Let d_key be an axis of its own, (n_kv_heads, group, d_key, d_in), and average over axis 1.",
)
def all_rows_of_a_group(weight, n_heads, n_kv_heads):
    return weight.unflatten(0, (n_kv_heads, -1)).mean(dim=1)


@BANK.mistake(
    "The average runs over the groups: there is one head for each member of a group, where there "
    "should be one for each group.",
    "Average over the heads of a group, axis 1 of (n_kv_heads, group, d_key, d_in).",
)
def over_the_groups(weight, n_heads, n_kv_heads):
    return by_group(weight, n_heads, n_kv_heads).mean(dim=0).flatten(0, 1)


@BANK.mistake(
    "The two sizes stand in each other's place, (group, n_kv_heads, d_key): each of your means "
    "runs over n_kv_heads heads, and there are as many means as a group has heads.",
    "Swap them: (n_kv_heads, group, d_key, d_in), and average over axis 1.",
)
def sizes_swapped(weight, n_heads, n_kv_heads):
    return by_group(weight, n_heads, n_heads // n_kv_heads).mean(dim=1).flatten(0, 1)


@BANK.mistake(
    "All heads are averaged into one. That is multi-query attention, n_kv_heads = 1, whatever is "
    "asked for.",
    "Average within each group: `unflatten` the rows into (n_kv_heads, group, d_key) first.",
)
def all_heads_in_one(weight, n_heads, n_kv_heads):
    return by_group(weight, n_heads, 1).mean(dim=1).flatten(0, 1)


@BANK.mistake(
    "The means are right, and each stands there once for every query head. Then the cache is as "
    "large as before.",
    "Leave out the repeating: each group's mean once.",
)
def repeated(weight, n_heads, n_kv_heads):
    means = by_group(weight, n_heads, n_kv_heads).mean(dim=1)
    return means.repeat_interleave(n_heads // n_kv_heads, dim=0).flatten(0, 1)


@BANK.mistake(
    "The means are right, and the heads still have an axis of their own. `nn.Linear` takes a "
    "matrix.",
    "Join the first two axes at the end: `.flatten(0, 1)`.",
)
def heads_left_apart(weight, n_heads, n_kv_heads):
    return by_group(weight, n_heads, n_kv_heads).mean(dim=1)


@BANK.mistake(
    "You take the rows apart with d_key in front, as if component 0 of all heads came first. They "
    "stand head by head, so each of your means runs over rows of other places and other heads.",
    "Let d_key be the last of the three axes, (n_kv_heads, group, d_key, d_in), and average over "
    "axis 1.",
)
def d_key_in_front(weight, n_heads, n_kv_heads):
    group, d_key = n_heads // n_kv_heads, len(weight) // n_heads
    return weight.unflatten(0, (d_key, group, n_kv_heads)).mean(dim=1).flatten(0, 1)


@BANK.mistake(
    "You group columns. `nn.Linear` stores its weight as (out, in): a head is d_key rows, and the "
    "columns belong to what comes in.",
    "Group the rows, axis 0: `weight.unflatten(0, …)`.",
)
def columns_grouped(weight, n_heads, n_kv_heads):
    heads = (n_kv_heads, n_heads // n_kv_heads, -1)
    return weight.unflatten(1, heads).mean(dim=2).flatten(1, 2)


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        n_kv_heads, group, d_key, other = numbers.sizes_from.sample((2, 3, 4, 5), 4)
        n_heads = n_kv_heads * group
        weight = numbers.tensor(n_heads * d_key, n_heads * other)
        return Case({"weight": weight, "n_heads": n_heads, "n_kv_heads": n_kv_heads})

    return [case(), case()]


TASK = Task("pool_heads", pool_heads, BANK, cases, {"pooled": "kv_heads·d_key d_in"})


def check_pool_heads(function: Callable, *, seed: int = 0) -> Result:
    """Check pool_heads(weight, n_heads, n_kv_heads) -> weight with fewer heads.

    weight (n_heads · d_key, d_in), of w_k or w_v, as nn.Linear stores it -> (n_kv_heads · d_key,
    d_in): n_heads / n_kv_heads consecutive heads each, replaced by their mean.
    """
    return examine(TASK, function, seed)
