"""check_rotary_attention (chapter 10): several heads whose scores know the distance alone."""

from collections.abc import Callable

import torch
from torch import Tensor

from attention.dot_product import scaled_dot_product_attention
from attention.heads import merge_heads, split_heads
from attention.masks import causal_mask

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def rotary_attention(q, k, v, n_heads, mask):
    """Three (batch, seq, d_model) -> (batch, seq, d_model), (batch, heads, query, key)."""
    return merged(*in_heads(q, k, v, n_heads, mask))


def turned(x: Tensor, way: int = 1, theta: Tensor | None = None) -> Tensor:
    """Every row of (…, seq, width) turned by its position, in pairs of neighbours."""
    seq, width = x.shape[-2:]
    theta = thetas(width) if theta is None else theta
    angle = way * torch.arange(seq)[:, None] * theta
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(pairs, dim=-1).flatten(-2)


def thetas(width: int) -> Tensor:
    return 10000.0 ** (-torch.arange(0, width, 2) / width)


def same(x: Tensor) -> Tensor:
    return x


def in_heads(q, k, v, n_heads, mask, of_q=turned, of_k=turned, of_v=same, scale=None):
    """Attention of every head, with one thing changed: how q, k or v is turned, or the scale."""
    q, k, v = (split_heads(x, n_heads) for x in (q, k, v))
    return scaled_dot_product_attention(of_q(q), of_k(k), of_v(v), mask, scale=scale)


def merged(output, weights):
    return merge_heads(output), weights


def both(q, k, v, n_heads, mask, turn):
    """Queries and keys turned alike, in another way."""
    return merged(*in_heads(q, k, v, n_heads, mask, turn, turn))


BANK = Bank.read(__file__, rotary_attention, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case(n_heads: int, d_key: int, *, padded: bool) -> Case:
        batch, seq = sorted(numbers.sizes(2, least=4))
        q, k, v = (numbers.tensor(batch, seq, n_heads * d_key) for _ in range(3))
        mask = numbers.padding(batch, seq)[:, None, None, :] if padded else causal_mask(seq)
        return Case({"q": q, "k": k, "v": v, "n_heads": n_heads, "mask": mask})

    few, more = numbers.sizes_from.sample((2, 3), 2)
    return [case(few, 4, padded=False), case(more, 8, padded=False), case(few, 8, padded=True)]


TASK = Task(
    "rotary_attention",
    rotary_attention,
    BANK,
    cases,
    {"output": "batch seq d_model", "weights": "batch heads query key"},
)


def check_rotary_attention(function: Callable, *, seed: int = 0) -> Result:
    """Check rotary_attention(q, k, v, n_heads, mask) -> (output, weights).

    q, k and v (batch, seq, d_model) are projected and not yet split; mask is boolean, True = may
    attend, and broadcasts to (batch, heads, query, key). The output is merged, (batch, seq,
    d_model), the weights are (batch, heads, query, key). Components 2i and 2i + 1 of a head turn by
    10000^(−2i/d_key) radians a position. Where the positions begin makes no difference.
    """
    return examine(TASK, function, seed)
