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


def first_row(yours, right, inputs):
    """What the weights of the first query add up to."""
    return f"Your first row sums to {yours[0][0, 0, 0].sum():.2f}."


BANK = Bank(weights_alone(known) for known in WHOLE_BANK if known.name in OF_THE_WEIGHTS)
BANK += Bank.read(__file__, attention_weights, globals())


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
