"""check_rotary_grouped (chapter 21): rotary positions and shared KV heads, by groups."""

from collections.abc import Callable

import torch
from torch import Tensor

from attention.heads import merge_heads
from attention.positions.rotary import Rotary

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
IN_GROUPS = (
    "Let the KV heads stand in front: `q.unflatten(1, (n_kv_heads, group))` is (batch, kv_heads, "
    "group, seq, d_key), and `k[:, :, None]` meets all of its group."
)
THETA = "`Rotary(d_key, base)(q, k)`"


def rotary_grouped(q, k, v, base):
    """q (batch, heads, seq, d_key), k and v (batch, kv_heads, seq, d_key) -> merged rows."""
    return merge_heads(weighted(softmax(masked(scores(q, k, base))), v))


def scores(q: Tensor, k: Tensor, base: float, turn: Callable | None = None, scale=None) -> Tensor:
    """Scores in groups, (batch, kv_heads, group, query, key)."""
    q, k = Rotary(q.shape[-1], base)(q, k) if turn is None else turn(q, k)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return q.unflatten(1, (k.shape[1], -1)) @ k[:, :, None].mT * scale


def future(s: Tensor) -> Tensor:
    return torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)


def masked(s: Tensor) -> Tensor:
    return s.masked_fill(future(s), -torch.inf)


def softmax(s: Tensor, dim: int = -1) -> Tensor:
    return s.softmax(dim)


def weighted(weights: Tensor, v: Tensor) -> Tensor:
    """Each head's result, (batch, heads, seq, d_key)."""
    return (weights @ v[:, :, None]).flatten(1, 2)


def turned_by(q, k, v, turn):
    return merge_heads(weighted(softmax(masked(scores(q, k, 1.0, turn))), v))


@BANK.mistake(
    "Every n-th query head shares a KV head. A group is made of consecutive heads, since the "
    "model was trained so: heads 0, 1 and 2 of nine meet KV head 0. In SmolLM2 no other mistake "
    "that was tried costs as much.",
    IN_GROUPS,
)
def dealt_out(q, k, v, base):
    q, k = Rotary(q.shape[-1], base)(q, k)
    group = q.shape[1] // k.shape[1]
    s = q.unflatten(1, (group, k.shape[1])) @ k[:, None].mT / q.shape[-1] ** 0.5
    return merge_heads((softmax(masked(s)) @ v[:, None]).flatten(1, 2))


@BANK.mistake(
    "There are fewer KV heads than query heads, and torch multiplies no nine heads by three.",
    IN_GROUPS,
)
def not_shared(q, k, v, base):
    q, k = Rotary(q.shape[-1], base)(q, k)
    return merge_heads(softmax(masked(q @ k.mT / q.shape[-1] ** 0.5)) @ v)


@BANK.mistake(
    "The heads of a group are averaged, so that all of them look where their mean looks.",
    "Each query head has scores of its own; only keys and values are shared. " + IN_GROUPS,
)
def mean_of_the_group(q, k, v, base):
    mean = (
        q.unflatten(1, (k.shape[1], -1))
        .mean(2, keepdim=True)
        .expand_as(q.unflatten(1, (k.shape[1], -1)))
    )
    return rotary_grouped(mean.flatten(1, 2), k, v, base)


@BANK.mistake(
    "The scores are not divided. They are sums of d_key products, and their softmax is nearly all "
    "on one key.",
    "Divide by √d_key before the softmax: `/ q.shape[-1] ** 0.5`.",
)
def no_divisor(q, k, v, base):
    return merge_heads(weighted(softmax(masked(scores(q, k, base, scale=1.0))), v))


@BANK.mistake(
    "The scores are divided by d_key, and not by its root. Then all weights are nearly equal.",
    "Divide by √d_key: `/ q.shape[-1] ** 0.5`.",
)
def divided_by_d_key(q, k, v, base):
    return merge_heads(weighted(softmax(masked(scores(q, k, base, scale=1 / q.shape[-1]))), v))


@BANK.mistake(
    "The scores are divided by √d_model. They are sums over the d_key components of one head.",
    "Divide by √d_key, the width of a head: `/ q.shape[-1] ** 0.5`.",
)
def divided_by_the_root_of_d_model(q, k, v, base):
    scale = (q.shape[1] * q.shape[-1]) ** -0.5
    return merge_heads(weighted(softmax(masked(scores(q, k, base, scale=scale))), v))


@BANK.mistake(
    "The softmax runs over the queries: the weights of a *column* sum to 1.",
    "Each query shares out its weight among the keys: `softmax(-1)`.",
)
def softmax_over_the_queries(q, k, v, base):
    return merge_heads(weighted(softmax(masked(scores(q, k, base)), -2), v))


@BANK.mistake(
    "Nothing hides the future. The loss of a text falls, since each token reads the one that it "
    "must tell, and nothing can be written.",
    "Fill the scores of later keys before the softmax: "
    "`scores.masked_fill(~causal_mask(seq), -torch.inf)`.",
)
def no_mask(q, k, v, base):
    return merge_heads(weighted(softmax(scores(q, k, base)), v))


@BANK.mistake(
    "The mask is the wrong way round: a query sees what comes after it.",
    "`causal_mask` is True where a query may look; fill where it is not: "
    "`scores.masked_fill(~causal_mask(seq), -torch.inf)`.",
)
def mask_inverted(q, k, v, base):
    s = scores(q, k, base)
    return merge_heads(weighted(softmax(s.masked_fill(~future(s), -torch.inf)), v))


@BANK.mistake(
    "The mask hides each token from itself, so that the first sees nothing at all: softmax of "
    "nothing is NaN.",
    "The diagonal stays: `causal_mask(seq)`, or `.tril()` without a number.",
)
def mask_hides_itself(q, k, v, base):
    s = scores(q, k, base)
    hidden = torch.ones(s.shape[-2:], dtype=torch.bool).triu()
    return merge_heads(weighted(softmax(s.masked_fill(hidden, -torch.inf)), v))


@BANK.mistake(
    "The mask comes after the softmax, so that later keys have taken their share already.",
    "Fill the scores with −∞, and then take the softmax.",
)
def masked_after_the_softmax(q, k, v, base):
    s = scores(q, k, base)
    return merge_heads(weighted(softmax(s) * ~future(s), v))


@BANK.mistake(
    "Nothing is turned, so that no score knows how far a key is.",
    f"Turn queries and keys before the scores: `q, k = ` {THETA}.",
)
def not_turned(q, k, v, base):
    return turned_by(q, k, v, lambda q, k: (q, k))


@BANK.mistake(
    "The angles are those of base 10,000, which `Rotary` takes unless it is told another. In "
    "SmolLM2 this costs about a tenth of a nat, and nobody notices.",
    f"Hand the base on: {THETA}.",
)
def base_left_out(q, k, v, base):
    return turned_by(q, k, v, Rotary(q.shape[-1]))


@BANK.mistake(
    "Your pairs take one component from each half of a head, and these weights turn neighbours.",
    f"Leave `halves` out: {THETA}.",
)
def pairs_from_two_halves(q, k, v, base):
    return turned_by(q, k, v, Rotary(q.shape[-1], base, halves=True))


@BANK.mistake(
    "The queries turn and the keys do not: a score knows where the query is, and not how far the "
    "key.",
    f"Both turn: `q, k = ` {THETA}.",
)
def only_queries_turned(q, k, v, base):
    return turned_by(q, k, v, lambda q, k: (Rotary(q.shape[-1], base)(q, k)[0], k))


@BANK.mistake(
    "The values are turned too. Weights choose by position; what they fetch has none.",
    "Leave `v` as it is.",
)
def values_turned_too(q, k, v, base):
    return rotary_grouped(q, k, Rotary(v.shape[-1], base)(v, v)[0], base)


@BANK.mistake(
    "Your merged heads are in another order: the first of every group, then the second. $W^O$ was "
    "trained for all heads of a group side by side.",
    "Put the KV heads and their groups together in that order, `.flatten(1, 2)` of (batch, "
    "kv_heads, group, seq, d_key), before you merge.",
)
def groups_merged_across(q, k, v, base):
    heads = softmax(masked(scores(q, k, base))) @ v[:, :, None]
    return merge_heads(heads.transpose(1, 2).flatten(1, 2))


@BANK.mistake(
    "The heads are cut back into rows without the transpose, so that a row holds pieces of several "
    "tokens.",
    "`merge_heads(heads)`, or `heads.transpose(1, 2).flatten(2)`.",
)
def merged_by_view(q, k, v, base):
    heads = weighted(softmax(masked(scores(q, k, base))), v)
    return heads.reshape(heads.shape[0], heads.shape[2], -1)


@BANK.mistake(
    "The heads are right, and not merged yet: (batch, heads, seq, d_key).",
    "Put them side by side: `merge_heads(heads)`.",
)
def not_merged(q, k, v, base):
    return weighted(softmax(masked(scores(q, k, base))), v)


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        n_kv_heads, group = numbers.sizes_from.sample((2, 3), 2)
        batch, seq = numbers.sizes(2, least=4)
        q = numbers.tensor(batch, n_kv_heads * group, seq, 8)
        k, v = (numbers.tensor(batch, n_kv_heads, seq, 8) for _ in range(2))
        return Case({"q": q, "k": k, "v": v, "base": numbers.sizes_from.choice((50.0, 1e5))})

    return [case(), case(), case()]


TASK = Task("rotary_grouped", rotary_grouped, BANK, cases, {"output": "batch seq n_heads·d_key"})


def check_rotary_grouped(function: Callable, *, seed: int = 0) -> Result:
    """Check rotary_grouped(q, k, v, base) -> output (batch, seq, n_heads · d_key).

    q (batch, heads, seq, d_key), k and v (batch, kv_heads, seq, d_key), split and not yet turned;
    consecutive query heads share a KV head. Queries and keys turn by the angles of `base`, each
    query sees itself and what comes before it, and the heads are merged.
    """
    return examine(TASK, function, seed)
