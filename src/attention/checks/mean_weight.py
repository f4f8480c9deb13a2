"""check_mean_weight (chapter 8): what each head gives, on average, from one word to another."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def mean_weight(weights, query, key):
    """weights (batch, heads, query, key), query (batch,), key (batch,) -> (heads,)."""
    return each(weights, query, key).mean(dim=0)


def each(weights, query, key):
    """The weight of every sentence and head, (batch, heads)."""
    sentence = torch.arange(len(weights))
    return weights[sentence, :, query, key]


@BANK.mistake(
    "`query` and `key` have changed places: this is what the word that is looked at gives to the "
    "one that looks.",
    "The queries stand on axis 2 and the keys on axis 3: `weights[sentence, :, query, key]`.",
)
def query_and_key_swapped(weights, query, key):
    return each(weights, key, query).mean(dim=0)


@BANK.mistake(
    "`weights[:, :, query, key]` takes every pair of places from every sentence, those of the "
    "other sentences too: (batch, heads, batch).",
    "Each sentence has a pair of its own: `weights[torch.arange(batch), :, query, key]`.",
)
def every_place_of_every_sentence(weights, query, key):
    return weights[:, :, query, key]


@BANK.mistake(
    "The places of all sentences are looked up in every sentence, and then averaged. A verb stands "
    "elsewhere in another sentence.",
    "Each sentence has a pair of its own: `weights[torch.arange(batch), :, query, key]`.",
)
def averaged_over_the_places_of_all(weights, query, key):
    return weights[:, :, query, key].mean(dim=(0, 2))


@BANK.mistake(
    "A row for each head and a column for each pair of places, (heads, batch): the places of all "
    "sentences are looked up in every sentence.",
    "Each sentence has a pair of its own: `weights[torch.arange(batch), :, query, key]`.",
)
def every_place_averaged_over_the_sentences(weights, query, key):
    return weights[:, :, query, key].mean(dim=0)


@BANK.mistake(
    "These are the weights of every sentence, (batch, heads), before the average.",
    "Average over the sentences, axis 0: `.mean(dim=0)`.",
)
def not_averaged(weights, query, key):
    return each(weights, query, key)


@BANK.mistake(
    "The average is over the heads: a number for each sentence, (batch,). Heads are what you want "
    "to tell apart.",
    "Average over the sentences, axis 0: `.mean(dim=0)`.",
)
def averaged_over_the_heads(weights, query, key):
    return each(weights, query, key).mean(dim=1)


@BANK.mistake(
    "One number for all heads. A head that looks at nothing else and a head that never looks there "
    "would give it together.",
    "Average over the sentences alone, axis 0: `.mean(dim=0)`.",
)
def averaged_over_everything(weights, query, key):
    return each(weights, query, key).mean()


@BANK.mistake(
    "These are sums over the sentences: with twice as many sentences they would be twice as large.",
    "Divide by the number of sentences, or take `.mean(dim=0)`.",
    lambda yours, right, inputs: f"Yours go up to {yours[0].max():.2f}; a weight is 1 at most.",
)
def summed(weights, query, key):
    return each(weights, query, key).sum(dim=0)


@BANK.mistake(
    "This counts how often the key gets the largest weight. It is a fair question, and another "
    "one: 0.51 and 0.99 count alike.",
    "Average the weights themselves: `weights[sentence, :, query, key].mean(dim=0)`.",
)
def how_often_it_is_the_largest(weights, query, key):
    sentence = torch.arange(len(weights))
    rows = weights[sentence, :, query]  # (batch, heads, key)
    return (rows.argmax(dim=-1) == key[:, None]).float().mean(dim=0)


@BANK.mistake(
    "This is the first sentence alone.",
    "Look up every sentence: `torch.arange(len(weights))` stands for all of them.",
)
def the_first_sentence_alone(weights, query, key):
    return weights[0, :, query[0], key[0]]


@BANK.mistake(
    "The average is over all queries, not over the one that is asked for.",
    "Pick the query's row as well: `weights[sentence, :, query, key]`.",
)
def over_all_queries(weights, query, key):
    sentence = torch.arange(len(weights))
    return weights.mean(dim=2)[sentence, :, key].mean(dim=0)


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
    each head gives from one place of a sentence to another, averaged over the sentences.
    """
    return examine(TASK, function, seed)
