"""check_scaled_dot_product_attention (chapters 4 to 6): softmax(q · kᵀ / √d_key) · v."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attention.dot_product import scaled_dot_product_attention
from attention.masks import causal_mask

from .dot_product_bank import BANK
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result
from .running import aside, outcome


def tensors(numbers: Numbers, *, large: float = 1.0) -> dict[str, Tensor]:
    """Draw query, key and value, with d_value unlike d_key and more keys than queries."""
    batch, heads, d_key, d_value, *lengths = numbers.sizes(6)
    queries, keys = sorted(lengths)
    return {
        "query": large * numbers.tensor(batch, heads, queries, d_key),
        "key": numbers.tensor(batch, heads, keys, d_key),
        "value": numbers.tensor(batch, heads, keys, d_value),
    }


def unmasked(numbers: Numbers) -> list[dict[str, Tensor]]:
    same_width = tensors(numbers)
    same_width["value"] = numbers.tensor(*same_width["key"].shape)  # as in a head: d_value = d_key
    # 200 times as large: scores of some hundreds, which exp cannot take.
    return [tensors(numbers), same_width, tensors(numbers, large=200.0)]


def masked(numbers: Numbers) -> list[dict[str, Tensor]]:
    padded, causal = tensors(numbers), tensors(numbers)
    best_forbidden = tensors(numbers, large=200.0)
    batch, _, keys, _ = padded["key"].shape
    padded["mask"] = numbers.padding(batch, keys)[:, None, None, :]
    causal["mask"] = causal_mask(causal["query"].shape[2], causal["key"].shape[2])
    # Each query's best key is forbidden, one that would have taken the whole weight.
    scores = best_forbidden["query"] @ best_forbidden["key"].mT
    best_forbidden["mask"] = scores < scores.amax(dim=-1, keepdim=True)
    return [padded, causal, best_forbidden]


def cases(numbers: Numbers) -> list[Case]:
    without = [{**inputs, "mask": None} for inputs in unmasked(numbers)]
    return [Case(inputs) for inputs in without + masked(numbers)]


def cases_without_mask(numbers: Numbers) -> list[Case]:
    return [Case(inputs) for inputs in unmasked(numbers)]


TASK = Task(
    "scaled_dot_product_attention",
    scaled_dot_product_attention,
    BANK,
    cases,
    {"output": "batch heads query d_value", "weights": "batch heads query key"},
    first_is_enough=True,
)
NOTHING_TO_SEE = (
    "A note: a query that may attend to nothing gets NaN from you, the softmax of -inf alone. The "
    "book's function gives it weights 0 and output 0 (chapter 5)."
)


def check_scaled_dot_product_attention(
    function: Callable, *, masks: bool = True, seed: int = 0
) -> Result:
    """Check scaled_dot_product_attention(query, key, value, mask=None) -> (output, weights).

    query (batch, heads, query, d_key), key (batch, heads, key, d_key), value (batch, heads, key,
    d_value) -> output (batch, heads, query, d_value), weights (batch, heads, query, key); the
    output alone passes too. mask: boolean, True = may attend.

    masks: False checks a function of query, key and value alone, as in the exercise of chapter 6.
    """
    if not masks:
        return examine(replace(TASK, cases=cases_without_mask), function, seed)
    result = examine(TASK, function, seed)
    if result.passed:
        with aside():
            inputs = tensors(Numbers(seed))
            mask = torch.zeros(inputs["query"].shape[2], inputs["key"].shape[2], dtype=torch.bool)
            blind = outcome(function, [*inputs.values(), mask], list(TASK.parts))
        if any(part.isnan().any() for part in blind.parts):
            return replace(result, paragraphs=(*result.paragraphs, NOTHING_TO_SEE))
    return result
