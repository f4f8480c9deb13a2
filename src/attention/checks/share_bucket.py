"""check_share_bucket (chapter 19): which vectors fall into one bucket, in some round of hashing."""

from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def share_bucket(x, rotations):
    """x (seq, d_key), rotations (rounds, d_key, half) -> (seq, seq), True where two rows meet."""
    return meet(both_ways(x @ rotations).argmax(dim=-1))


def both_ways(products: Tensor) -> Tensor:
    """Each direction and its opposite, (rounds, seq, 2 · half)."""
    return torch.cat([products, -products], dim=-1)


def same_bucket(buckets: Tensor) -> Tensor:
    """(rounds, seq) -> (rounds, seq, seq)."""
    return buckets[:, :, None] == buckets[:, None, :]


def meet(buckets: Tensor) -> Tensor:
    return same_bucket(buckets).any(dim=0)


def pairs(yours, right, inputs):
    mine, due = (int(each[0].sum()) for each in (yours, right))
    return f"Yours joins {mine} of {right[0].numel()} pairs, and should join {due}."


def opposite(yours, right, inputs):
    return (
        "Row 1 of `x` is row 0 with all signs turned, and yours puts the two together."
        if yours[0].shape == right[0].shape and yours[0][0, 1]
        else "A vector and its opposite must never meet."
    )


BANK = Bank.read(__file__, share_bucket, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case(rounds: int) -> Case:
        half, d_key, seq = sorted(numbers.sizes(3, least=3))
        x = numbers.tensor(seq + 4, d_key)
        x[1] = -x[0]
        return Case({"x": x, "rotations": numbers.tensor(rounds, d_key, half)})

    return [case(2), case(6), case(1)]


TASK = Task("share_bucket", share_bucket, BANK, cases, {"meet": "seq seq"})


def check_share_bucket(function: Callable, *, seed: int = 0) -> Result:
    """Check share_bucket(x, rotations) -> (seq, seq), boolean.

    x (seq, d_key) are the vectors of one head, rotations (rounds, d_key, half) random numbers. True
    where two of them fall, in at least one round, into the same of 2 · half buckets.
    """
    return examine(TASK, function, seed)
