"""check_step_cost (chapter 14): what it takes a layer to write one token more, with a cache."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def step_cost(n, d_model, n_heads, d_ff):
    """Four sizes -> (4,): projections, scores and sums, feed-forward, and numbers kept."""
    return parts(n, d_model, d_ff)


def parts(n, d_model, d_ff, **changed):
    """The four numbers, of which a mistake changes some."""
    right = {
        "projections": 4 * d_model**2,
        "pairs": 2 * n * d_model,
        "feed_forward": 2 * d_model * d_ff,
        "kept": 2 * n * d_model,
    }
    return torch.tensor(list((right | changed).values()))


@BANK.mistake(
    "The pairs are counted once. A query meets each key twice: for the score, and for the weighted "
    "sum of the values.",
    "Both take n · d_model multiply-adds: `2 * n * d_model`.",
)
def scores_alone(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, pairs=n * d_model)


@BANK.mistake(
    "Three projections are counted. After the heads are merged comes the fourth, W_O.",
    "W_Q, W_K, W_V and W_O have d_model² entries each: `4 * d_model**2`.",
)
def w_o_forgotten(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, projections=3 * d_model**2)


@BANK.mistake(
    "The heads are counted twice. A head has d_key = d_model / n_heads columns, so n_heads heads "
    "together have d_model, no more than one head would.",
    "Either `n_heads * d_key` or `d_model`, not both.",
)
def heads_counted_twice(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, pairs=2 * n * d_model * n_heads)


@BANK.mistake(
    "The projections are multiplied by the number of heads. W_Q is one matrix of d_model × d_model "
    "for all heads; each head reads d_key of its columns.",
    "n_heads stands nowhere in the projections: `4 * d_model**2`.",
)
def a_matrix_for_each_head(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, projections=4 * d_model**2 * n_heads)


@BANK.mistake(
    "These are the scores and sums of one head.",
    "All heads together read d_model columns: `2 * n * d_model`.",
)
def one_head(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, pairs=2 * n * (d_model // n_heads))


@BANK.mistake(
    "The feed-forward layer has two matrices, d_model to d_ff and back; one is counted.",
    "Count both: `2 * d_model * d_ff`.",
)
def one_matrix_of_feed_forward(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, feed_forward=d_model * d_ff)


@BANK.mistake(
    "The feed-forward layer is counted as if it were 4 · d_model wide. Many are; this one says its "
    "own width.",
    "Use d_ff: `2 * d_model * d_ff`.",
)
def four_times_as_wide(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, feed_forward=8 * d_model**2)


@BANK.mistake(
    "All n tokens pass the layer. That is what reading them at once takes, or a step without a "
    "cache; with a cache the new token passes alone.",
    "One row goes through every matrix, and one query meets n keys.",
)
def without_the_cache(n, d_model, n_heads, d_ff):
    return torch.tensor(
        [4 * n * d_model**2, 2 * n * n * d_model, 2 * n * d_model * d_ff, 2 * n * d_model]
    )


@BANK.mistake(
    "There are n² pairs if n queries ask. In this step one query asks: the earlier ones have had "
    "their answers.",
    "One query meets n keys: `2 * n * d_model`.",
)
def all_pairs(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, pairs=2 * n * n * d_model)


@BANK.mistake(
    "W_K and W_V are counted for all n tokens. That is the work which the cache saves: the keys "
    "and values of the earlier tokens are there already.",
    "Only the new token is projected: `4 * d_model**2`.",
)
def keys_and_values_again(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, projections=(2 + 2 * n) * d_model**2)


@BANK.mistake(
    "The new token does not see itself: n − 1 keys are counted. Its own key and value go into the "
    "cache first, and then its query asks all n.",
    "`2 * n * d_model` for the pairs.",
)
def not_itself(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, pairs=2 * (n - 1) * d_model)


@BANK.mistake(
    "These are the numbers kept before the step. Afterwards the cache holds the new token's key "
    "and value too.",
    "n tokens, a key and a value each: `2 * n * d_model`.",
)
def kept_before(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, kept=2 * (n - 1) * d_model)


@BANK.mistake(
    "The cache holds the keys or the values. It needs both: with keys alone the next query would "
    "have scores, and nothing to add up.",
    "A key and a value for each token: `2 * n * d_model`.",
)
def keys_alone(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, kept=n * d_model)


@BANK.mistake(
    "The cache is counted in bytes, two for each number. The numbers themselves are asked for.",
    "A key and a value for each token: `2 * n * d_model`.",
)
def kept_in_bytes(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, kept=4 * n * d_model)


@BANK.mistake(
    "The last two entries are in each other's place.",
    "First the feed-forward layer, `2 * d_model * d_ff`, then what is kept, `2 * n * d_model`.",
)
def last_two_swapped(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, feed_forward=2 * n * d_model, kept=2 * d_model * d_ff)


@BANK.mistake(
    "The cache is counted for one head. Every head has keys and values of its own here.",
    "All heads together keep 2 · d_model numbers for a token: `2 * n * d_model`.",
)
def cache_of_one_head(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, kept=2 * n * (d_model // n_heads))


@BANK.mistake(
    "These are floating-point operations, two for each multiply-add: one product and one sum.",
    "Multiply-adds are asked for: divide by two.",
)
def flops(n, d_model, n_heads, d_ff):
    counted = parts(n, d_model, d_ff)
    return torch.cat([2 * counted[:3], counted[3:]])


@BANK.mistake(
    "n − 1 tokens are counted, for the pairs and for what is kept: the new one is missing. Its own "
    "key and value go into the cache first, and then its query asks all n.",
    "`2 * n * d_model` for the pairs, and as many numbers kept.",
)
def without_the_new_token(n, d_model, n_heads, d_ff):
    earlier = 2 * (n - 1) * d_model
    return parts(n, d_model, d_ff, pairs=earlier, kept=earlier)


@BANK.mistake(
    "All four numbers are twice as large as they should be. FLOPs would be two for each "
    "multiply-add, but multiply-adds are asked for; and a number that is kept is one number.",
    "Divide all four by two.",
)
def all_doubled(n, d_model, n_heads, d_ff):
    return 2 * parts(n, d_model, d_ff)


@BANK.mistake(
    "n · d_model is half of what the pairs take, and half of what is kept. There are two products, "
    "scores and weighted sums, and two rows for each token, a key and a value.",
    "`2 * n * d_model` both times.",
)
def one_of_two(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, pairs=n * d_model, kept=n * d_model)


@BANK.mistake(
    "The pairs and the cache are those of one head: they are divided by n_heads.",
    "All heads together have d_model columns: `2 * n * d_model` both times.",
)
def pairs_and_cache_of_one_head(n, d_model, n_heads, d_ff):
    of_one = 2 * n * (d_model // n_heads)
    return parts(n, d_model, d_ff, pairs=of_one, kept=of_one)


@BANK.mistake(
    "The projections are those of one head: d_model × d_key entries in each matrix. A matrix makes "
    "the columns of all heads.",
    "W_Q, W_K, W_V and W_O are d_model × d_model: `4 * d_model**2`.",
)
def projections_of_one_head(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff, projections=4 * d_model * (d_model // n_heads))


@BANK.mistake(
    "Everything in attention is counted for one head: the projections, the pairs and the cache.",
    "n_heads heads of d_key columns are d_model columns: `4 * d_model**2`, and twice "
    "`2 * n * d_model`.",
)
def attention_of_one_head(n, d_model, n_heads, d_ff):
    d_key = d_model // n_heads
    of_one = 2 * n * d_key
    return parts(n, d_model, d_ff, projections=4 * d_model * d_key, pairs=of_one, kept=of_one)


@BANK.mistake(
    "The heads are counted twice, in the pairs and in the cache. All heads together have d_model "
    "columns, since a head has d_key = d_model / n_heads of them.",
    "`2 * n * d_model` both times: n_heads times d_key, or d_model, not both.",
)
def heads_twice_in_the_cache_too(n, d_model, n_heads, d_ff):
    too_many = 2 * n * d_model * n_heads
    return parts(n, d_model, d_ff, pairs=too_many, kept=too_many)


@BANK.mistake(
    "All is added up into one number. Multiply-adds and numbers kept are different things, and "
    "which part is large is the question.",
    "Return the four numbers side by side: `torch.tensor([...])`.",
)
def added_up(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff).sum()


@BANK.mistake(
    "The counts came back as floats: `/` makes one, even where it leaves no remainder.",
    "Divide counts with `//`: `d_key = d_model // n_heads`.",
)
def with_a_point(n, d_model, n_heads, d_ff):
    return parts(n, d_model, d_ff).to(torch.float32)


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        n_heads, d_key, wide, long = numbers.sizes(4, least=3)
        sizes = {"n": 10 * long + 1, "d_model": n_heads * d_key, "n_heads": n_heads}
        return Case({**sizes, "d_ff": 10 * wide})

    return [case(), case()]


TASK = Task("step_cost", step_cost, BANK, cases, {"counts": "part"})


def check_step_cost(function: Callable, *, seed: int = 0) -> Result:
    """Check step_cost(n, d_model, n_heads, d_ff) -> counts.

    With n - 1 tokens in its cache a layer writes one token more. counts (4,): the multiply-adds of
    the four projections, of the scores and weighted sums, and of the feed-forward layer, and then
    how many numbers the cache holds.
    """
    return examine(TASK, function, seed)
