"""check_back_to_verb (chapter 22): what each head gives from an object back to its verb."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
OWN_PLACES = (
    "Each sentence has places of its own. With `batch = torch.arange(len(verbs))` the rows of the "
    "objects are `rows = weights[batch, :, objects]`, and once the first key is cut off, "
    "`rows[batch, :, verbs - 1]` is what they give their verbs."
)
NEW_SUM = "`rows[..., 1:] / rows[..., 1:].sum(-1, keepdim=True)`"


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


@BANK.mistake(
    "This is what the verb gives its object. The object stands behind the verb, and a causal head "
    "gives nothing to what comes later.",
    "The object is the query, on axis 2, and the verb is the key, on axis 3. Take the rows "
    "`weights[batch, :, objects]`, and of these the key `verbs - 1` once the first is cut off.",
)
def roles_swapped(weights, objects, verbs):
    return each(weights, verbs, objects - 1).mean(0)


@BANK.mistake(
    "The rows are those of the verbs, and this is what a verb gives itself.",
    "The object is the query: `rows = weights[batch, :, objects]`.",
)
def the_verbs_row(weights, objects, verbs):
    return each(weights, verbs, verbs - 1).mean(0)


@BANK.mistake(
    "This is the verb's part of the whole row, in which the first token has its part too. "
    "Cutting the first key off changes none of the other weights, so that they sum to less than 1.",
    f"Divide what is left by its new sum: {NEW_SUM}.",
)
def not_shared_anew(weights, objects, verbs):
    return rows_of(weights, objects)[torch.arange(len(verbs)), :, verbs].mean(0)


@BANK.mistake(
    "The sums have the shape (batch, heads), and torch lays their last axis, the heads, along the "
    "keys.",
    f"Keep the axis of the keys: {NEW_SUM}.",
)
def sum_without_its_axis(weights, objects, verbs):
    left = rows_of(weights, objects)[..., 1:]
    return (left / left.sum(-1))[torch.arange(len(verbs)), :, verbs - 1].mean(0)


@BANK.mistake(
    "The softmax is taken a second time. A weight of 0 becomes e⁰ = 1 in it, so that the tokens "
    "after the object count too, and all weights are nearly equal.",
    f"The weights are shares already. Divide what is left by its new sum: {NEW_SUM}.",
)
def softmax_again(weights, objects, verbs):
    rows = rows_of(weights, objects)[..., 1:].softmax(-1)
    return rows[torch.arange(len(verbs)), :, verbs - 1].mean(0)


@BANK.mistake(
    "This is the weight of the token after the verb. Once the first key is cut off, every other "
    "key stands one place earlier.",
    "Take the key `verbs - 1` of the shortened rows.",
)
def one_too_far(weights, objects, verbs):
    return each(weights, objects, verbs).mean(0)


@BANK.mistake(
    "The average is over all queries, so that every token of the sentence is asked what it gives "
    "the verb.",
    "Take the row of the object alone: `rows = weights[batch, :, objects]`.",
)
def over_all_queries(weights, objects, verbs):
    rows = shared_anew(weights.mean(2))
    return rows[torch.arange(len(verbs)), :, verbs - 1].mean(0)


@BANK.mistake(
    "The first token's own row is in your average. It has one weight, on the first token itself, "
    "and without it 0 / 0 is left, which is NaN.",
    "Take the row of the object alone, `rows = weights[batch, :, objects]`, before you divide.",
)
def the_first_row_as_well(weights, objects, verbs):
    rows = shared_anew(weights).mean(2)
    return rows[torch.arange(len(verbs)), :, verbs - 1].mean(0)


@BANK.mistake(
    "This is the share of the sentences in which the verb has the largest weight. It is a fair "
    "question, and another one, in which 0.51 and 0.99 count alike.",
    "Average the weights themselves: `rows[batch, :, verbs - 1].mean(0)`.",
)
def how_often_it_is_the_largest(weights, objects, verbs):
    largest = shared_anew(rows_of(weights, objects)).argmax(-1)  # (batch, heads)
    return (largest == verbs[:, None] - 1).float().mean(0)


@BANK.mistake(
    "The places of the first sentence are looked up in all sentences. In another sentence verb and "
    "object stand elsewhere.",
    OWN_PLACES,
)
def places_of_the_first_sentence(weights, objects, verbs):
    return shared_anew(weights[:, :, objects[0]])[:, :, verbs[0] - 1].mean(0)


@BANK.mistake(
    "The places of every sentence are looked up in all sentences, which gives (heads, batch).",
    OWN_PLACES,
)
def every_place_of_every_sentence(weights, objects, verbs):
    return shared_anew(weights)[:, :, objects, verbs - 1].mean(0)


@BANK.mistake(
    "The rows are right. Then the verbs of all sentences are looked up in each of them, which "
    "gives (heads, batch).",
    "Say which sentence each verb belongs to: `rows[batch, :, verbs - 1]` in the place of "
    "`rows[:, :, verbs - 1]`.",
)
def every_verb_in_every_row(weights, objects, verbs):
    return shared_anew(rows_of(weights, objects))[:, :, verbs - 1].mean(0)


@BANK.mistake(
    "These are the weights of every sentence, (batch, heads), before the average.",
    "Average over the sentences, axis 0: `.mean(0)`.",
)
def not_averaged(weights, objects, verbs):
    return each(weights, objects, verbs - 1)


@BANK.mistake(
    "The average is over the heads, and gives a number for each sentence, (batch,). You want to "
    "tell the heads apart.",
    "Average over the sentences, axis 0, and not over the heads: `.mean(0)`.",
)
def averaged_over_the_heads(weights, objects, verbs):
    return each(weights, objects, verbs - 1).mean(1)


@BANK.mistake(
    "This is one number for all heads. A head that looks at nothing but the verb and a head that "
    "never looks there share it.",
    "Average over the sentences alone, axis 0: `.mean(0)`.",
)
def averaged_over_everything(weights, objects, verbs):
    return each(weights, objects, verbs - 1).mean()


@BANK.mistake(
    "These are sums over the sentences. With twice as many sentences they would be twice as large.",
    "Divide by the number of sentences, or take `.mean(0)`.",
    lambda yours, right, inputs: f"Yours go up to {yours[0].max():.2f}; a weight is 1 at most.",
)
def summed(weights, objects, verbs):
    return each(weights, objects, verbs - 1).sum(0)


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
