"""check_mean_weight (chapter 8): what each head gives, on average, from one word to another."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def mean_weight(weights, query, key):
    """weights (batch, heads, query, key), query (batch,), key (batch,) -> (heads,)."""
    return each(weights, query, key).mean(dim=0)


def each(weights, query, key):
    """The weight of every sentence and head, (batch, heads)."""
    sentence = torch.arange(len(weights))
    return weights[sentence, :, query, key]


BANK = Bank.read(__file__, mean_weight, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        batch, heads, queries, keys = numbers.sizes(4, least=3)
        weights = numbers.tensor(batch, heads, queries, keys).softmax(dim=-1)
        places = min(queries, keys)
        start, step = numbers.sizes_from.randrange(places), numbers.sizes_from.randrange(1, places)
        query = (start + torch.arange(batch)) % places
        key = (query + step) % places  # another place of the sentence
        return Case({"weights": weights, "query": query, "key": key})

    return [case(), case()]


TASK = Task("mean_weight", mean_weight, BANK, cases, {"means": "heads"})


def check_mean_weight(function: Callable, *, seed: int = 0) -> Result:
    """Check mean_weight(weights, query, key) -> means.

    weights (batch, heads, query, key), query (batch,), key (batch,) -> (heads,): the weight that
    each head gives from one position of a sentence to another, averaged over the sentences.
    """
    return examine(TASK, function, seed)
