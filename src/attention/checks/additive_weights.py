"""check_additive_weights (chapter 9): softmax over keys of v_a · tanh(W_q · query + W_k · key)."""

from collections.abc import Callable

import torch  # noqa: F401 - rows use it

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def additive_weights(query, key, w_q, w_k, v_a):
    """(batch, query, d), (batch, key, d), two (hidden, d), (hidden,) -> (batch, query, key)."""
    return (pairs(query, key, w_q, w_k).tanh() @ v_a).softmax(dim=-1)


def pairs(query, key, w_q, w_k):
    """W_q · query + W_k · key for every pair, (batch, query, key, hidden)."""
    return (query @ w_q.T)[:, :, None] + (key @ w_k.T)[:, None]


BANK = Bank.read(__file__, additive_weights, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        batch, queries, keys, width, hidden = numbers.sizes(5)
        return Case(
            {
                "query": numbers.tensor(batch, queries, width),
                "key": numbers.tensor(batch, keys, width),
                "w_q": numbers.tensor(hidden, width),
                "w_k": numbers.tensor(hidden, width),
                "v_a": numbers.tensor(hidden),
            }
        )

    return [case(), case()]


TASK = Task("additive_weights", additive_weights, BANK, cases, {"weights": "batch query key"})


def check_additive_weights(function: Callable, *, seed: int = 0) -> Result:
    """Check additive_weights(query, key, w_q, w_k, v_a) -> weights.

    query (batch, query, d), key (batch, key, d), w_q and w_k (hidden, d), v_a (hidden,) -> (batch,
    query, key): softmax over the keys of v_a · tanh(W_q · query + W_k · key).
    """
    return examine(TASK, function, seed)
