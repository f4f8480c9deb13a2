"""check_attention_weights (chapter 4): softmax(q · kᵀ / √d_key), without values and masks."""

import math
from collections.abc import Callable
from dataclasses import replace

from attention.dot_product import scaled_dot_product_attention

from .bank import Bank, Mistake
from .dot_product import tensors
from .dot_product_bank import BANK as WHOLE_BANK
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
# Mistakes of the whole function whose words fit the weights alone.
OF_THE_WEIGHTS = (
    "not_scaled",
    "divided_by_d_key",
    "divided_by_root_of_d_model",
    "divided_by_root_of_keys",
    "multiplied_by_root_of_d_key",
    "scaled_after_the_softmax",
    "softmax_over_queries",
    "softmax_over_heads",
    "softmax_over_the_batch",
    "softmax_over_everything",
    "log_softmax",
    "sigmoid",
    "exp_overflows",
    "cosine",
    "key_not_transposed",
    "weights_averaged",
)


def attention_weights(query, key):
    """query (batch, heads, query, d_key), key (batch, heads, key, d_key) -> weights."""
    return scaled_dot_product_attention(query, key, key)[1]


def scores_of(query, key):
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def weights_alone(known: Mistake) -> Mistake:
    """The same mistake in a function that returns the weights and nothing else."""

    def evidence(yours, right, inputs):
        return known.evidence((None, *yours), (None, *right), inputs)

    return replace(
        known,
        function=lambda query, key: known.function(query, key, key)[1],
        evidence=evidence if known.evidence else None,
    )


BANK.extend(weights_alone(known) for known in WHOLE_BANK if known.name in OF_THE_WEIGHTS)


def first_row(yours, right, inputs):
    """What the weights of the first query add up to."""
    return f"Your first row sums to {yours[0][0, 0, 0].sum():.2f}."


@BANK.mistake(
    "On four axes `.T` turns all of them around, the batch and the heads too.",
    "Swap only the last two axes: `key.transpose(-2, -1)`.",
)
def all_axes_turned_around(query, key):
    scores = query @ key.permute(3, 2, 1, 0) / math.sqrt(query.shape[-1])
    return scores.softmax(dim=-1)


@BANK.mistake(
    "These are the scores, before the softmax.",
    "Turn each row into weights that are positive and sum to 1: `scores.softmax(dim=-1)`.",
    first_row,
)
def no_softmax(query, key):
    return scores_of(query, key)


@BANK.mistake(
    "The powers of e are there, and the division by their sum is missing.",
    "Divide each row by what it adds up to: `powers / powers.sum(dim=-1, keepdim=True)`.",
    first_row,
)
def never_divided_by_the_sum(query, key):
    scores = scores_of(query, key)
    return (scores - scores.amax(dim=-1, keepdim=True)).exp()


@BANK.mistake(
    "The scores are divided by their sum, without e to the power of the scores. A score may be "
    "negative, and so may your weights.",
    "First `exp`, then the division: `powers / powers.sum(dim=-1, keepdim=True)`.",
    lambda yours, right, inputs: f"Your smallest weight is {yours[0].min():.2f}.",
)
def scores_divided_by_their_sum(query, key):
    scores = scores_of(query, key)
    return scores / scores.sum(dim=-1, keepdim=True)


@BANK.mistake(
    "The number that you subtract is the largest score of all heads and queries. In a row far "
    "below it every power is rounded to 0, and 0/0 is NaN.",
    "Each row has a largest score of its own: `scores.amax(dim=-1, keepdim=True)`.",
)
def one_maximum_for_all(query, key):
    scores = scores_of(query, key)
    powers = (scores - scores.max()).exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@BANK.mistake(
    "Without `keepdim=True` the sum has lost the axis of the keys, (batch, heads, query), and "
    "torch lays it beside the wrong axes.",
    "`powers.sum(dim=-1, keepdim=True)` is (batch, heads, query, 1), one sum for each row.",
)
def sum_without_keepdim(query, key):
    powers = scores_of(query, key).exp()
    return powers / powers.sum(dim=-1)


@BANK.mistake(
    "Queries and keys have changed roles: your weights are (key, query).",
    "Queries stand on the left: `query @ key.transpose(-2, -1)` is (query, key).",
)
def query_and_key_swapped(query, key):
    return attention_weights(key, query)


@BANK.mistake(
    "The weights are multiplied by the keys already, (batch, heads, query, d_key).",
    "Return the weights themselves. What they weigh, the values, comes in chapter 6.",
)
def keys_weighted(query, key):
    return attention_weights(query, key) @ key


@BANK.mistake(
    "These are the weights of head 0 alone.",
    "`@` computes all heads at once: leave the axes in front as they are.",
)
def first_head_only(query, key):
    return attention_weights(query, key)[:, 0]


def cases(numbers: Numbers) -> list[Case]:
    # 200 times as large: scores of some hundreds, which exp cannot take.
    drawn = [tensors(numbers), tensors(numbers), tensors(numbers, large=200.0)]
    return [Case({"query": inputs["query"], "key": inputs["key"]}) for inputs in drawn]


TASK = Task(
    "attention_weights", attention_weights, BANK, cases, {"weights": "batch heads query key"}
)


def check_attention_weights(function: Callable, *, seed: int = 0) -> Result:
    """Check attention_weights(query, key) -> weights.

    query (batch, heads, query, d_key), key (batch, heads, key, d_key) -> (batch, heads, query,
    key): the scaled dot products, and their softmax over the keys.
    """
    return examine(TASK, function, seed)
