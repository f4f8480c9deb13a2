"""Strided attention (Sparse Transformer): the keys before the query, and its column further back.

Lay the sequence out in rows of `stride` tokens. A query attends to the stride keys before it and to
the earlier keys in its own column. These are at most stride + n/stride keys, which is of the order
of √n where stride is. Time then grows as n·√n, not as n. Two layers connect a query with every
earlier key, first along the column, then along the row. The pattern is causal. It suits data that
has such rows, for example images. The output equals dense attention under the pattern's mask.

The paper gives row and column to two heads, to two layers or to one merged head (§5.1). This module
computes the merged head; the row alone is `sparse_attention(…, window=stride, causal=True)`.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import require_size
from attention.precision import summed_in_float32
from attention.sparse.blocks import how_many_at_once, require_self_attention


def strided_mask(
    seq: int, stride: int, *, device: torch.device | str | None = None
) -> Bool[Tensor, "seq seq"]:
    """True for the query itself, the stride keys before it and every stride-th key before those.

    Args:
        seq: how many tokens.
        stride: the length of a row.
        device: where the mask is made; torch's default unless given.

    Returns:
        The mask, (query, key).

    Source:
        Child et al. 2019, §4.3 and figure 3b.

    Example:
        >>> from attention import strided_mask
        >>> strided_mask(6, 2)[5].int()
        tensor([0, 1, 0, 1, 1, 1], dtype=torch.int32)
    """
    require_size("seq", seq)
    require_size("stride", stride)
    distance = torch.arange(seq, device=device)[:, None] - torch.arange(seq, device=device)
    return (distance >= 0) & ((distance <= stride) | (distance % stride == 0))


def attend_undivided(
    query: Float[Tensor, "batch heads group query d_key"],
    key: Float[Tensor, "batch heads group key d_key"],
    value: Float[Tensor, "batch heads group key d_value"],
    unpadded: Bool[Tensor, "_ _ group key 1"],
    pattern: Bool[Tensor, "query key"],
    least: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Σ exp(score - largest) · value, Σ exp(score - largest), and the largest score or `least`."""
    scores = query @ key.transpose(-2, -1)
    scores.masked_fill_(~(pattern & unpadded.transpose(-2, -1)), -math.inf)
    largest = scores.detach().amax(-1, keepdim=True).clamp(min=least)
    scores.sub_(largest).exp_()  # in place: fresh memory takes longer than the arithmetic
    return scores @ value, scores.sum(-1, keepdim=True), largest


def strided_attention(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    stride: int,
) -> Float[Tensor, "batch heads seq d_value"]:
    """Attend to the stride keys before the query and to every stride-th key before those.

    The output equals attention under `strided_mask(seq, stride)`.

    Args:
        query: (batch, heads, seq, d_key).
        key: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        mask: which keys are not padding, (batch, 1, 1, seq). A query that may attend to nothing
            gets output 0.
        stride: the length of a row.

    Returns:
        The output, one vector for each query. float16 and bfloat16 are computed in float32.

    Raises:
        ValueError: for different numbers of queries and keys, and a mask that differs between
            queries.

    Cost:
        O(n · (stride + n/stride) · d_key) time. O(n · d_key + stride² + (n/stride)²) memory, which
        is O(n · d_key) at stride ≈ √n; with gradients, and on an accelerator, O(n · (stride +
        n/stride + d_key)).
        torch.export takes one length at a time: how many rows are computed follows from it.

    Source:
        Child et al. 2019, §4.3.

    Example:
        >>> import torch
        >>> from attention import fused_attention, strided_attention, strided_mask
        >>> x = torch.randn(1, 2, 100, 8)
        >>> output = strided_attention(x, x, x, stride=10)
        >>> torch.allclose(output, fused_attention(x, x, x, strided_mask(100, 10)), atol=1e-5)
        True
    """
    require_self_attention(query, key, value, mask, "strided attention")
    require_size("stride", stride)
    return attend_strided(query, key, value, mask, stride=stride)


@summed_in_float32
def attend_strided(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    mask: Bool[Tensor, "..."] | None,
    *,
    stride: int,
) -> Float[Tensor, "batch heads seq d_value"]:
    """`strided_attention` without its argument checks."""
    seq = query.shape[-2]
    stride = min(stride, seq)
    n_rows = math.ceil(seq / stride)
    spare = n_rows * stride - seq

    def pairs(x: Tensor) -> Tensor:  # each row with the one before: (..., row, 2·stride, width)
        padded = F.pad(x, (0, 0, stride, spare))
        return padded.unfold(-2, 2 * stride, stride).transpose(-2, -1)

    def columns(x: Tensor) -> Tensor:  # (..., row, column, width) -> (..., column, row, width)
        return x.transpose(-3, -2)

    def few_at_once(query: Tensor, key: Tensor, *others: Tensor) -> zip:  # a few groups of each
        numbers = query.shape[:2].numel() * query.shape[3] * key.shape[3]  # scores of a group
        at_once = how_many_at_once(query.shape[2], numbers, query)
        return zip(*(x.split(at_once, dim=2) for x in (query, key, *others)), strict=True)

    # Keys are counted from the first key of the row before. The near keys are the query's own and
    # the stride keys before it. The far keys are those of its column, except in its own row and the
    # row before, where they are near already.
    reach = torch.ones(stride, 2 * stride, dtype=torch.bool, device=query.device)
    is_near = reach.triu() & reach.tril(stride)
    is_far = torch.ones(n_rows, n_rows, dtype=torch.bool, device=query.device).tril(-2)

    unpadded = torch.ones(1, 1, 1, seq, dtype=torch.bool, device=query.device)
    unpadded = (unpadded if mask is None else unpadded & mask).transpose(-2, -1)
    query = F.pad(query / math.sqrt(query.shape[-1]), (0, 0, 0, spare))
    query = query.unflatten(-2, (n_rows, stride))  # (..., row, column, d_key)
    near = [query, *(pairs(x) for x in (key, value, unpadded))]
    far = [columns(x) for x in (query, *(x[..., stride:, :] for x in near[1:]))]

    lowest = query.new_full((), torch.finfo(query.dtype).min)  # -inf - -inf would be NaN
    far = [attend_undivided(*few, is_far, lowest) for few in few_at_once(*far)]
    far = [columns(torch.cat(parts, dim=2)) for parts in zip(*far, strict=True)]
    outputs = []
    for *few, far_sum, far_total, far_largest in few_at_once(*near, *far):
        near_sum, near_total, largest = attend_undivided(*few, is_near, far_largest)
        # One softmax over both parts: they share the largest score and the total.
        share = (far_largest - largest).exp()
        total = near_total + far_total * share
        output = near_sum + far_sum * share
        outputs.append(output / torch.where(total == 0, 1.0, total))  # nothing to attend to: 0 / 1
    return torch.cat(outputs, dim=2).flatten(-3, -2)[..., :seq, :]
