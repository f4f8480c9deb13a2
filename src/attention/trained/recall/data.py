"""Pairs of a key and a value, and questions after them.

There are two tasks. In the first all keys of a sequence differ. In the second every key is written
twice, with two different values, and the later value counts.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from attention.arguments import require_size

N_KEYS, N_VALUES = 64, 16
LENGTHS = (4, 8, 16, 32, 64)  # pairs of the sequences that a model is measured on
SHORTEST, LONGEST = 4, 64  # pairs of a sequence in training
QUESTIONS = 8  # of a sequence in training; when a model is measured, one
MOST = LONGEST + QUESTIONS  # positions of the longest sequence
TASKS = {"once": False, "rewritten": True}  # how the table's file names them


class Pairs(NamedTuple):
    """Sequences of pairs, and the questions after them.

    Attributes:
        keys: (batch, pairs), from 0 to 63.
        values: (batch, pairs), from 0 to 15.
        asked: (batch, questions), keys that are among the pairs.
        answers: (batch, questions), the value that was last written beside each.
    """

    keys: Int64[Tensor, "batch pairs"]
    values: Int64[Tensor, "batch pairs"]
    asked: Int64[Tensor, "batch questions"]
    answers: Int64[Tensor, "batch questions"]


def draw_pairs(
    count: int,
    n_pairs: int,
    n_questions: int,
    generator: torch.Generator,
    *,
    rewritten: bool = False,
) -> Pairs:
    """Draw sequences of pairs, and questions after them.

    Args:
        count: how many sequences.
        n_pairs: how many pairs each has, at most as many as there are keys, 64.
        n_questions: how many keys are asked after them, each drawn from the pairs independently.
        generator: where the random numbers come from.
        rewritten: whether each key comes twice, in any order, and never with the same value. With
            an odd number of pairs one key comes once.

    Raises:
        ValueError: there are not that many keys.

    Source:
        Arora et al. 2023 (multi-query associative recall), made smaller: there a key and its value
        are two tokens, which a model has to join first; here they are one. Schlag et al. 2021 write
        keys again, to tell the delta rule from the sum.

    Example:
        >>> import torch
        >>> from attention.trained.recall import draw_pairs
        >>> pairs = draw_pairs(1, 4, 2, torch.Generator().manual_seed(1), rewritten=True)
        >>> pairs.keys, pairs.values
        (tensor([[50, 50, 28, 28]]), tensor([[ 1, 15, 13,  5]]))
        >>> pairs.asked, pairs.answers
        (tensor([[50, 50]]), tensor([[15, 15]]))
    """
    for name, size in {"count": count, "n_pairs": n_pairs, "n_questions": n_questions}.items():
        require_size(name, size)
    if n_pairs > N_KEYS:
        raise ValueError(f"n_pairs={n_pairs} is more than the {N_KEYS} keys that there are")

    def shuffled(n: int) -> Int64[Tensor, "count n"]:
        return torch.rand(count, n, generator=generator).argsort(1)

    keys = shuffled(N_KEYS)[:, :n_pairs]
    values = torch.randint(N_VALUES, (count, n_pairs), generator=generator)
    if rewritten:  # the last pairs take the keys of the first, then all are shuffled
        again = n_pairs // 2
        change = torch.randint(1, N_VALUES, (count, again), generator=generator)
        order = shuffled(n_pairs)
        keys = torch.cat((keys[:, : n_pairs - again], keys[:, :again]), dim=1).gather(1, order)
        other = (values[:, :again] + change) % N_VALUES
        values = torch.cat((values[:, : n_pairs - again], other), dim=1).gather(1, order)
    asked = keys.gather(1, torch.randint(n_pairs, (count, n_questions), generator=generator))
    # The largest of the positions where the key is written is its last one.
    place = torch.arange(1, n_pairs + 1) * (asked[..., None] == keys[:, None])
    return Pairs(keys, values, asked, values.gather(1, place.argmax(-1)))


def new_pairs(n_pairs: int, count: int = 2000, *, rewritten: bool = False) -> Pairs:
    """Draw new sequences with one question each to measure on, the same at every call.

    There is only one question, so that nothing comes between it and the pairs.

    Example:
        >>> from attention.trained.recall import new_pairs
        >>> new_pairs(32, 50).keys.shape
        torch.Size([50, 32])
    """
    generator = torch.Generator().manual_seed(10**6 + n_pairs)
    return draw_pairs(count, n_pairs, 1, generator, rewritten=rewritten)
