"""check_additive_weights (chapter 9): softmax over keys of v_a · tanh(W_q · query + W_k · key)."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def additive_weights(query, key, w_q, w_k, v_a):
    """(batch, query, d), (batch, key, d), two (hidden, d), (hidden,) -> (batch, query, key)."""
    return (pairs(query, key, w_q, w_k).tanh() @ v_a).softmax(dim=-1)


def pairs(query, key, w_q, w_k):
    """W_q · query + W_k · key for every pair, (batch, query, key, hidden)."""
    return (query @ w_q.T)[:, :, None] + (key @ w_k.T)[:, None]


@BANK.mistake(
    "The tanh is missing. Without it v_a · W_q · query is one number for a whole row, and softmax "
    "drops it: every query gets the same weights, whatever it asks.",
    "Take the tanh of the sum: `torch.tanh(pairs) @ v_a`.",
    lambda yours, right, inputs: (
        "Your rows of queries 0 and 1 differ by "
        f"{(yours[0][:, 0] - yours[0][:, 1]).abs().max():.2f} at most."
    ),
)
def without_tanh(query, key, w_q, w_k, v_a):
    return (pairs(query, key, w_q, w_k) @ v_a).softmax(dim=-1)


@BANK.mistake(
    "The tanh is taken of the score, after v_a. Inside, the sum comes apart into a part for the "
    "query and a part for the key.",
    "First the tanh of every hidden unit, then v_a: `torch.tanh(pairs) @ v_a`.",
)
def tanh_of_the_score(query, key, w_q, w_k, v_a):
    return (pairs(query, key, w_q, w_k) @ v_a).tanh().softmax(dim=-1)


@BANK.mistake(
    "Each part has a tanh of its own, and then they are added. The query's part is again one "
    "number for a whole row, and softmax drops it.",
    "Add first: `torch.tanh(for_query + for_key)`.",
)
def tanh_of_each_part(query, key, w_q, w_k, v_a):
    parts = (query @ w_q.T).tanh()[:, :, None] + (key @ w_k.T).tanh()[:, None]
    return (parts @ v_a).softmax(dim=-1)


@BANK.mistake(
    "The two parts are multiplied. The score is called additive because they are added.",
    "`for_query[:, :, None] + for_key[:, None]`.",
)
def multiplied(query, key, w_q, w_k, v_a):
    product = (query @ w_q.T)[:, :, None] * (key @ w_k.T)[:, None]
    return (product.tanh() @ v_a).softmax(dim=-1)


@BANK.mistake(
    "This is a dot product of the projected query and the projected key, Luong's score *general* "
    "with W_qᵀ · W_k between the two.",
    "Add the two, take the tanh, and let v_a make one number of it: `torch.tanh(pairs) @ v_a`.",
)
def dot_product(query, key, w_q, w_k, v_a):
    return ((query @ w_q.T) @ (key @ w_k.T).mT).softmax(dim=-1)


@BANK.mistake(
    "v_a is missing: the hidden units are summed as if each counted alike.",
    "`torch.tanh(pairs) @ v_a` weighs them, (batch, query, key).",
)
def v_forgotten(query, key, w_q, w_k, v_a):
    return pairs(query, key, w_q, w_k).tanh().sum(dim=-1).softmax(dim=-1)


@BANK.mistake(
    "The softmax is over the queries, so that the columns sum to 1. A query shares its weight "
    "among the keys.",
    "The keys stand on the last axis: `scores.softmax(dim=-1)`.",
    lambda yours, right, inputs: (
        f"Your first row sums to {yours[0][0, 0].sum():.2f}, "
        f"your first column to {yours[0][0, :, 0].sum():.2f}."
    ),
)
def softmax_over_queries(query, key, w_q, w_k, v_a):
    return (pairs(query, key, w_q, w_k).tanh() @ v_a).softmax(dim=1)


@BANK.mistake(
    "The softmax is over the hidden units, before v_a, so that no row sums to 1.",
    "First the scores, `torch.tanh(pairs) @ v_a`, then their softmax over the keys.",
)
def softmax_over_the_hidden_units(query, key, w_q, w_k, v_a):
    return pairs(query, key, w_q, w_k).tanh().softmax(dim=-1) @ v_a


@BANK.mistake(
    "These are the scores, before the softmax.",
    "Turn each row into weights that sum to 1: `scores.softmax(dim=-1)`.",
    lambda yours, right, inputs: f"Your first row sums to {yours[0][0, 0].sum():.2f}.",
)
def no_softmax(query, key, w_q, w_k, v_a):
    return pairs(query, key, w_q, w_k).tanh() @ v_a


@BANK.mistake(
    "This is the context: the weights are right, and the keys are averaged with them already.",
    "Give back the weights, `scores.softmax(dim=-1)`, without `@ key`.",
)
def the_context(query, key, w_q, w_k, v_a):
    return additive_weights(query, key, w_q, w_k, v_a) @ key


@BANK.mistake(
    "The scores are divided by the root of the number of hidden units. Additive attention is not "
    "scaled: tanh keeps every hidden unit between -1 and 1.",
    "Leave the division out.",
)
def scaled(query, key, w_q, w_k, v_a):
    return (pairs(query, key, w_q, w_k).tanh() @ v_a / len(v_a) ** 0.5).softmax(dim=-1)


@BANK.mistake(
    "W_q and W_k have changed places: W_q projects your keys and W_k your queries.",
    "`query @ w_q.T` and `key @ w_k.T`.",
)
def matrices_swapped(query, key, w_q, w_k, v_a):
    return additive_weights(query, key, w_k, w_q, v_a)


@BANK.mistake(
    "Queries and keys have changed roles: your weights are (batch, key, query).",
    "Queries stand on axis 1 and keys on axis 2: `for_query[:, :, None] + for_key[:, None]`.",
)
def roles_swapped(query, key, w_q, w_k, v_a):
    return additive_weights(key, query, w_k, w_q, v_a)


@BANK.mistake(
    "The two parts are added as they are, so that torch pairs query 0 with key 0. Each query meets "
    "every key.",
    "Give each part an axis of size 1 for the other, and torch pairs them all: "
    "`for_query[:, :, None] + for_key[:, None]`.",
)
def not_paired(query, key, w_q, w_k, v_a):
    return (torch.tanh(query @ w_q.T + key @ w_k.T) @ v_a).softmax(dim=-1)


@BANK.mistake(
    "The queries have an axis for the keys, and the keys have none for the queries: torch takes "
    "your batch for it.",
    "Both need one: `for_query[:, :, None] + for_key[:, None]`.",
)
def paired_on_one_side(query, key, w_q, w_k, v_a):
    pairs = (query @ w_q.T)[:, :, None] + key @ w_k.T
    return (torch.tanh(pairs) @ v_a).softmax(dim=-1)


@BANK.mistake(
    "The transpose of w_q is missing. A query is a row of `query`, with d numbers, and w_q is "
    "(hidden, d), so that the axes next to `@` differ.",
    "Transpose both matrices: `query @ w_q.T` and `key @ w_k.T`.",
)
def not_transposed(query, key, w_q, w_k, v_a):
    pairs = (query @ w_q)[:, :, None] + (key @ w_k)[:, None]
    return (torch.tanh(pairs) @ v_a).softmax(dim=-1)


@BANK.mistake(
    "The transpose of w_k is missing. A key is a row of `key`, with d numbers, and w_k is "
    "(hidden, d).",
    "Transpose it as you do w_q: `key @ w_k.T`.",
)
def keys_not_transposed(query, key, w_q, w_k, v_a):
    pairs = (query @ w_q.T)[:, :, None] + (key @ w_k)[:, None]
    return (torch.tanh(pairs) @ v_a).softmax(dim=-1)


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
