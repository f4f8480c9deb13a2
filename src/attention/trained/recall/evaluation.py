"""How many questions a model answers right, by the number of pairs and by their age."""

import torch
from jaxtyping import Float
from torch import Tensor

from attention.trained.recall.data import LENGTHS, LONGEST, Pairs, new_pairs
from attention.trained.recall.model import RecallModel


@torch.no_grad()
def accuracy(model: RecallModel, pairs: Pairs) -> float:
    """The share of the questions that are answered right; guessing reaches 1/16.

    Example:
        >>> from attention.trained.recall import accuracy, load, new_pairs
        >>> accuracy(load(), new_pairs(64, 500)) > 0.99
        True
    """
    *shown, answers = pairs
    return (model(*shown).argmax(-1) == answers).double().mean().item()


def accuracy_by_pairs(model: RecallModel, *, rewritten: bool = False) -> dict[int, float]:
    """The accuracy on 2,000 new sequences of each number of pairs in `LENGTHS`.

    Source:
        This book's own, after Arora et al. 2023.

    Example:
        >>> from functools import partial
        >>> from attention import Mechanism, sparse_attention
        >>> from attention.trained.recall import accuracy_by_pairs, load
        >>> model = load()  # trained with softmax over all pairs
        >>> model.attention.attend = Mechanism(partial(sparse_attention, window=8, causal=True))
        >>> by_pairs = accuracy_by_pairs(model)
        >>> by_pairs[8] > 0.99, by_pairs[64] < 0.25  # it finds the last 8 and guesses the others
        (True, True)
    """
    return {n: accuracy(model, new_pairs(n, rewritten=rewritten)) for n in LENGTHS}


def accuracy_by_place(model: RecallModel, count: int = 100) -> Float[Tensor, " places"]:
    """The accuracy on the pair at each of 64 positions: what a model forgets.

    Every key is asked, in a sequence of its own. Where all answers depend on age alone, position 0
    is the oldest.

    Args:
        model: as trained on keys that are all different.
        count: how many sequences; each is asked 64 times.

    Returns:
        The shares, (64,), in the order in which the pairs were written.

    Example:
        >>> from attention.trained.recall import accuracy_by_place, load
        >>> bool((accuracy_by_place(load(), 20) > 0.8).all())
        True
    """
    keys, values, *_ = new_pairs(LONGEST, count)
    at = [Pairs(keys, values, keys[:, [i]], values[:, [i]]) for i in range(LONGEST)]
    return torch.tensor([accuracy(model, pairs) for pairs in at])


def measure(model: RecallModel) -> dict[str, dict[int, float]]:
    """Measure a model on 2,000 new sequences of each number of pairs, with keys that differ."""
    return {"accuracy": {n: round(share, 4) for n, share in accuracy_by_pairs(model).items()}}
