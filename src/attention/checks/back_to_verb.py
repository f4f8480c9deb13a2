"""check_back_to_verb (chapter 22): what each head gives from an object back to its verb."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def back_to_verb(weights, objects, verbs):
    """weights (batch, heads, seq, seq), objects and verbs (batch,) -> (heads,)."""
    return each(weights, objects, verbs - 1).mean(0)


def rows_of(weights, queries):
    """The row of one query of each sentence, (batch, heads, key)."""
    return weights[torch.arange(len(queries)), :, queries]


def shared_anew(rows):
    """Rows without their first key, which sum to 1 again."""
    return rows[..., 1:] / rows[..., 1:].sum(-1, keepdim=True)


def each(weights, queries, keys):
    """What a query gives a key, counted without the first, in every sentence: (batch, heads)."""
    return shared_anew(rows_of(weights, queries))[torch.arange(len(keys)), :, keys]


BANK = Bank.read(__file__, back_to_verb, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        batch, heads = numbers.sizes(2, least=3)
        seq = numbers.sizes_from.randrange(12, 15)  # room for a verb elsewhere in every sentence
        places = range(1, seq - 2)
        verbs, others = (sorted(numbers.sizes_from.sample(places, batch)) for _ in range(2))
        objects = [max(pair) + 2 for pair in zip(verbs, others, strict=True)]  # behind the verbs
        scores = numbers.tensor(batch, heads, seq, seq)
        scores[..., 0] += 3.0  # where most heads park their weight
        scores[torch.arange(batch), :, objects, verbs] += 2.5  # so that some look there most
        future = torch.ones(seq, seq, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        places_of = {"objects": torch.tensor(objects), "verbs": torch.tensor(verbs)}
        return Case({"weights": weights, **places_of})

    return [case(), case()]


TASK = Task("back_to_verb", back_to_verb, BANK, cases, {"means": "heads"})


def check_back_to_verb(function: Callable, *, seed: int = 0) -> Result:
    """Check back_to_verb(weights, objects, verbs) -> means.

    weights (batch, heads, seq, seq) of causal heads, objects (batch,), verbs (batch,) -> (heads,):
    the weight that each head gives from the object of a sentence to its verb, averaged over the
    sentences. The first token is left out, and the other weights of a row are divided by their sum.
    Every object stands behind its verb, and no verb is the first token.
    """
    return examine(TASK, function, seed)
