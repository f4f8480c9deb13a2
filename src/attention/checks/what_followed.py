"""check_what_followed (chapter 12): what each head gives to the token that followed last time."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def what_followed(weights, token_ids):
    """weights (batch, heads, seq, seq), token_ids (batch, seq) -> (heads,)."""
    return mean(found(weights, last(token_ids), on=1))


def earlier(token_ids):
    """(batch, query, key): True where the key is before the query and holds its token."""
    return (token_ids[:, :, None] == token_ids[:, None, :]).tril(-1)


def last(token_ids):
    """Of each query the last earlier position with its token, -1 where there is none."""
    places = torch.arange(token_ids.shape[1])
    return torch.where(earlier(token_ids), places, -1).amax(-1)


def found(weights, places, *, on=0, queries_on=0):
    """A list of what the heads give from each query that counts to a key, (heads,) each.

    on: how many positions the key lies after the given one. queries_on: the same for the query.
    """
    batch, _, seq, _ = weights.shape
    return [
        weights[b, :, i + queries_on, places[b, i] + on]
        for b in range(batch)
        for i in range(seq - queries_on)
        if places[b, i] >= 0 and places[b, i] + on < seq  # -1 is the last place, as for a learner
    ]


def mean(rows):
    return torch.stack(rows).mean(dim=0)


BANK = Bank.read(__file__, what_followed, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        batch, heads = numbers.sizes(2, least=3)
        seq = numbers.sizes_from.randrange(11, 14)  # longer than SIZES has, so that tokens return
        scores = 2 * numbers.tensor(batch, heads, seq, seq)
        future = torch.ones(seq, seq, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        ids = [[numbers.sizes_from.randrange(6) for _ in range(seq)] for _ in range(batch)]
        return Case({"weights": weights, "token_ids": torch.tensor(ids)})

    return [case(), case()]


TASK = Task("what_followed", what_followed, BANK, cases, {"means": "heads"})


def check_what_followed(function: Callable, *, seed: int = 0) -> Result:
    """Check what_followed(weights, token_ids) -> means.

    weights (batch, heads, seq, seq), token_ids (batch, seq) -> (heads,): the weight that each head
    gives to the key after the last earlier occurrence of the query's token, averaged over all
    queries of the batch whose token has come before.
    """
    return examine(TASK, function, seed)
