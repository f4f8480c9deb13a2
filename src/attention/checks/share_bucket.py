"""check_share_bucket (chapter 19): which vectors fall into one bucket, in some round of hashing."""

from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


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


@BANK.mistake(
    "Half of the buckets are missing: you take the largest of x · R alone. A vector that points "
    "away from all the random ones still lands in the bucket of one of them.",
    "Join x · R and −x · R along the last axis before `argmax`.",
    pairs,
)
def without_the_opposites(x, rotations):
    return meet((x @ rotations).argmax(dim=-1))


@BANK.mistake(
    "You take the product of the largest size, whatever its sign. Then a vector and its opposite "
    "share a bucket, and their score is the lowest there is.",
    "Keep the sign: the largest of x · R and −x · R, side by side.",
    opposite,
)
def sizes_without_signs(x, rotations):
    return meet((x @ rotations).abs().argmax(dim=-1))


@BANK.mistake(
    "These are the signs of all products. That is hashing by planes: two vectors meet only if they "
    "lie on the same side of every one.",
    "Take the one largest product: `argmax` over x · R and −x · R.",
    pairs,
)
def signs_of_all(x, rotations):
    signs = x @ rotations > 0
    return (signs[:, :, None] == signs[:, None, :]).all(dim=-1).any(dim=0)


@BANK.mistake(
    "Yours asks for the same bucket in every round. More rounds then find fewer pairs, and they "
    "are there to find more.",
    "One round is enough: `.any` over the rounds in place of `.all`.",
    pairs,
)
def in_every_round(x, rotations):
    return same_bucket(both_ways(x @ rotations).argmax(dim=-1)).all(dim=0)


@BANK.mistake(
    "Only the first round counts; the others are not used.",
    "Hash with each of the rotations, and join what the rounds find with `.any`.",
    pairs,
)
def the_first_round(x, rotations):
    return meet(both_ways(x @ rotations[:1]).argmax(dim=-1))


@BANK.mistake(
    "Only the last round counts. In a loop, each round has written over the one before.",
    "Join the rounds: start with a matrix of False, and `|` what each of them finds.",
    pairs,
)
def the_last_round(x, rotations):
    return meet(both_ways(x @ rotations[-1:]).argmax(dim=-1))


@BANK.mistake(
    "Buckets of different rounds are compared. Bucket 2 of one round and bucket 2 of another have "
    "nothing in common but the number: their rotations differ.",
    "Compare within a round, then join the rounds.",
    pairs,
)
def rounds_compared_with_rounds(x, rotations):
    buckets = both_ways(x @ rotations).argmax(dim=-1)
    return (buckets[:, None, :, None] == buckets[None, :, None, :]).flatten(0, 1).any(dim=0)


@BANK.mistake(
    "The rotations are added up before the hash. The sum of random matrices is one random matrix, "
    "so this is one round.",
    "Hash with each of the rotations, and join what the rounds find with `.any`.",
    pairs,
)
def rotations_added(x, rotations):
    return meet(both_ways(x @ rotations.sum(dim=0, keepdim=True)).argmax(dim=-1))


@BANK.mistake(
    "All rounds take part in one `argmax`. That is one round with as many times the buckets, in "
    "which fewer vectors meet.",
    "An `argmax` for each round, over its own products.",
    pairs,
)
def one_large_round(x, rotations):
    products = torch.cat(list(x @ rotations), dim=-1)
    return meet(both_ways(products).argmax(dim=-1)[None])


@BANK.mistake(
    "The rotations are not used: this takes the largest component of x itself, in every round the "
    "same.",
    "Multiply first: `x @ rotations`, which is (rounds, seq, half).",
    pairs,
)
def not_rotated(x, rotations):
    return meet(both_ways(x).argmax(dim=-1)[None])


@BANK.mistake(
    "Your `argmax` runs over the tokens: it says which token lies furthest along each direction.",
    "Each token chooses a direction: `argmax(dim=-1)`.",
)
def over_the_tokens(x, rotations):
    return meet(both_ways(x @ rotations).argmax(dim=1))


@BANK.mistake(
    "x · R and −x · R stand below each other, so there are twice as many tokens, and each has its "
    "choice of half of the buckets.",
    "Join them along the last axis: `torch.cat([…, …], dim=-1)`.",
)
def joined_below(x, rotations):
    products = x @ rotations
    return meet(torch.cat([products, -products], dim=1).argmax(dim=-1))


@BANK.mistake(
    "These are the buckets. Asked for is which tokens share one.",
    "Compare each token's bucket with each token's: `buckets[:, :, None] == buckets[:, None, :]`.",
)
def buckets_alone(x, rotations):
    return both_ways(x @ rotations).argmax(dim=-1)


@BANK.mistake(
    "The rounds still have an axis of their own.",
    "Two tokens meet if they meet in one of the rounds: `.any(dim=0)`.",
)
def rounds_left_apart(x, rotations):
    return same_bucket(both_ways(x @ rotations).argmax(dim=-1))


@BANK.mistake(
    "You count the rounds in which two tokens meet. A pair that meets twice still gets one weight.",
    "`.any(dim=0)` in place of `.sum(dim=0)`: True or False.",
)
def rounds_counted(x, rotations):
    return same_bucket(both_ways(x @ rotations).argmax(dim=-1)).sum(dim=0)


@BANK.mistake(
    "A token does not share a bucket with itself in yours. That a Reformer's token does not attend "
    "to itself is decided later, since one that meets nobody else must.",
    "Leave the diagonal as it comes out: True.",
)
def without_itself(x, rotations):
    return share_bucket(x, rotations) & ~torch.eye(len(x), dtype=torch.bool)


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
