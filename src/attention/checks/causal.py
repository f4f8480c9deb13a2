"""check_causal_mask (chapter 5): (query, key), True where a key is not in the query's future."""

import math
from collections.abc import Callable

import torch

from attention.masks import causal_mask

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
RIGHT_WAY = "`torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)`"


def shifted(n_queries, n_keys, by):
    """The causal mask with its diagonal moved `by` keys into the future."""
    n_keys = n_queries if n_keys is None else n_keys
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries + by)


def last_query(yours, right, inputs):
    """What the last query sees, which must be every key."""
    return f"Your last query sees {int(yours[0][-1].sum())} of {yours[0].shape[1]} keys."


def pairs(yours, right, inputs):
    return (
        f"Yours allows {int(yours[0].sum())} pairs of a query and a key, and should allow "
        f"{int(right[0].sum())}."
    )


@BANK.mistake(
    "The mask is the wrong way round: each query sees its future and nothing else.",
    "Here True means may attend. Turn it with `~`, or keep the lower triangle (`tril`) instead of "
    "the upper.",
    last_query,
)
def inverted(n_queries, n_keys=None):
    return ~shifted(n_queries, n_keys, 0)


@BANK.mistake(
    "Off by one: a query sees the keys before it and not itself. The first one sees nothing.",
    "A token may attend to itself: `<=` instead of `<`, the diagonal included.",
    pairs,
)
def without_itself(n_queries, n_keys=None):
    return shifted(n_queries, n_keys, -1)


@BANK.mistake(
    "Off by one: a query sees the key after it, the token that a model must predict there.",
    "The diagonal is the last key it sees: `<=` its own position, not one further.",
    pairs,
)
def one_key_of_the_future(n_queries, n_keys=None):
    return shifted(n_queries, n_keys, 1)


@BANK.mistake(
    "The first query is aligned with the first key, as torch's `is_causal` does. With as many "
    "queries as keys that is the same. With cached keys the newest query must see them all.",
    f"Align the last with the last: {RIGHT_WAY}.",
    last_query,
)
def aligned_top_left(n_queries, n_keys=None):
    n_keys = n_queries if n_keys is None else n_keys
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril()


@BANK.mistake(
    "The upper triangle is True: a query sees itself and its future.",
    "The past is left of the diagonal, so keep the lower triangle: `tril` instead of `triu`.",
    last_query,
)
def upper_triangle(n_queries, n_keys=None):
    n_keys = n_queries if n_keys is None else n_keys
    return torch.ones(n_queries, n_keys, dtype=torch.bool).triu(n_keys - n_queries)


@BANK.mistake(
    "The alignment goes the wrong way: the difference of keys and queries is taken away instead "
    "of added.",
    f"With more keys than queries each query sees more, not fewer: {RIGHT_WAY}.",
    last_query,
)
def aligned_the_wrong_way(n_queries, n_keys=None):
    n_keys = n_queries if n_keys is None else n_keys
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_queries - n_keys)


@BANK.mistake(
    "Rows and columns have changed places: your mask is (key, query).",
    "The queries ask, and have the rows: (query, key).",
)
def keys_in_rows(n_queries, n_keys=None):
    return shifted(n_queries, n_keys, 0).T.contiguous()


@BANK.mistake(
    "n_keys is not used: your mask is (query, query).",
    f"With cached keys there are more keys than queries: {RIGHT_WAY}.",
)
def keys_ignored(n_queries, n_keys=None):
    return shifted(n_queries, None, 0)


@BANK.mistake(
    "Everything is allowed: each query sees the whole future.",
    f"Keep the lower triangle: {RIGHT_WAY}.",
    pairs,
)
def all_allowed(n_queries, n_keys=None):
    return torch.ones(n_queries, n_queries if n_keys is None else n_keys, dtype=torch.bool)


@BANK.mistake(
    "Each query sees itself and nothing else, so that attention would return its own value.",
    f"The past belongs to it, the whole lower triangle: {RIGHT_WAY}.",
    pairs,
)
def only_itself(n_queries, n_keys=None):
    return shifted(n_queries, n_keys, 0) & ~shifted(n_queries, n_keys, -1)


@BANK.mistake(
    "The mask holds ones and zeros as numbers. torch adds a mask of numbers to the scores, which "
    "forbids nothing.",
    "Make it boolean: `dtype=torch.bool`, or compare positions with `<=`.",
)
def as_numbers(n_queries, n_keys=None):
    return shifted(n_queries, n_keys, 0).float()


@BANK.mistake(
    "This is an additive mask, 0 where a query may attend and -inf where not. The book's masks are "
    "boolean.",
    "Return which are allowed; what adds numbers to the scores can make them from it.",
)
def additive(n_queries, n_keys=None):
    mask = shifted(n_queries, n_keys, 0)
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


@BANK.mistake(
    "n_keys may be left out, and is None then.",
    "Begin with `n_keys = n_queries if n_keys is None else n_keys`.",
)
def keys_needed(n_queries, n_keys=None):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)


@BANK.mistake(
    "Where there are more queries than keys, the first queries see nothing, and yours see keys: a "
    "slice up to a negative number counts from the end.",
    "A row with no keys left must be empty: `[: max(seen, 0)]`.",
    pairs,
)
def counted_from_the_end(n_queries, n_keys=None):
    n_keys = n_queries if n_keys is None else n_keys
    mask = torch.zeros(n_queries, n_keys, dtype=torch.bool)
    for query in range(n_queries):
        mask[query, : n_keys - n_queries + query + 1] = True
    return mask


def cases(numbers: Numbers) -> list[Case]:
    alone = numbers.sizes(1, least=3)[0]
    fewer, more = sorted(numbers.sizes(2, least=3))
    return [
        Case({"n_queries": alone, "n_keys": None}),
        Case({"n_queries": fewer, "n_keys": more}),
        Case({"n_queries": 1, "n_keys": more}),
        Case({"n_queries": more, "n_keys": fewer}),
    ]


TASK = Task("causal_mask", causal_mask, BANK, cases, {"mask": "query key"})


def check_causal_mask(function: Callable, *, seed: int = 0) -> Result:
    """Check causal_mask(n_queries, n_keys=None): a boolean mask of shape (query, key)."""
    return examine(TASK, function, seed)
