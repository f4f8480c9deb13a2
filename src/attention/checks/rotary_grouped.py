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


BANK = Bank.read(__file__, rotary_grouped, globals())


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
