"""Strided attention (Sparse Transformer): the keys before the query, and its column further back.

Lay the sequence out in rows of `stride` tokens. A query attends to the stride keys before it and to
the earlier keys in its own column: about stride + n/stride keys, least at stride ≈ √n. Time and
memory then grow as n·√n, and not as n, as is often written. Two layers connect a query with every
earlier key: along the column, then along the row. The pattern is causal, and suits data that has
such rows, images for example. The output equals dense attention under the pattern's mask.

The paper gives row and column to two heads, to two layers or to one merged head (§5.1). This is the
merged head; the row alone is `sparse_attention(…, window=stride, causal=True)`.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import check_size
from attention.blocks import check_one_sequence


def strided_mask(seq: int, stride: int) -> Bool[Tensor, "seq seq"]:
    """True for the query itself, the stride keys before it and every stride-th key before those.

    Args:
        seq: how many tokens.
        stride: the length of a row.

    Returns:
        The mask, (query, key).

    Source:
        Child et al. 2019, §4.3 and figure 3b.

    Example:
        >>> from attention import strided_mask
        >>> strided_mask(6, 2)[5].int()
        tensor([0, 1, 0, 1, 1, 1], dtype=torch.int32)
    """
    check_size("seq", seq)
    check_size("stride", stride)
    distance = torch.arange(seq)[:, None] - torch.arange(seq)
    return (distance >= 0) & ((distance <= stride) | (distance % stride == 0))


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
        mask: which keys are no padding, (batch, 1, 1, seq). A query that may attend to nothing gets
            0.
        stride: the length of a row.

    Returns:
        The output, (batch, heads, seq, d_value).

    Raises:
        ValueError: for another number of queries than keys and a mask that differs between queries.

    Cost:
        O(n · (stride + n/stride) · d_key) time, O(n · (stride + n/stride)) memory.

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
    check_one_sequence(query, key, value, mask, "strided attention")
    check_size("stride", stride)
    seq, device = query.shape[-2], query.device
    stride = min(stride, seq)
    n_rows = math.ceil(seq / stride)
    spare = n_rows * stride - seq

    def pairs(x: Tensor) -> Tensor:  # each row with the one before: (..., row, 2·stride, width)
        padded = F.pad(x, (0, 0, stride, spare))
        return padded.unfold(-2, 2 * stride, stride).transpose(-2, -1)

    def columns(x: Tensor) -> Tensor:  # (..., row, column, width) -> (..., column, row, width)
        return x.transpose(-3, -2)

    query = F.pad(query / math.sqrt(query.shape[-1]), (0, 0, 0, spare))
    query = query.unflatten(-2, (n_rows, stride))  # (..., row, column, d_key)
    near_keys, near_values = pairs(key), pairs(value)
    far_keys, far_values = (columns(x[..., stride:, :]) for x in (near_keys, near_values))
    near = query @ near_keys.transpose(-2, -1)  # (..., row, column, 2·stride)
    far = columns(query) @ far_keys.transpose(-2, -1)  # (..., column, row, n_rows)

    # Near are the last stride keys and the query's own, counted from the row before's first. Of the
    # column, its own row and the row before are near already, so that far leaves both out.
    column = torch.arange(stride, device=device)[:, None]
    reach = torch.arange(2 * stride, device=device)
    is_near = ((reach >= column) & (reach <= column + stride)).repeat(n_rows, 1, 1)
    is_near[0, :, :stride] = False  # there is no row before the first
    is_far = torch.ones(n_rows, n_rows, dtype=torch.bool, device=device).tril(-2)
    if mask is not None:
        unpadded = pairs(mask.expand(*mask.shape[:-1], seq).transpose(-2, -1))
        is_near = is_near & unpadded.transpose(-2, -1)
        is_far = is_far & columns(unpadded[..., stride:, :]).transpose(-2, -1)
    near.masked_fill_(~is_near, -math.inf)
    far.masked_fill_(~is_far, -math.inf)

    # One softmax over both parts: they share the largest score and the total. Written over the
    # scores, since fresh memory of their size takes longer than the arithmetic.
    largest = torch.maximum(near.amax(-1, keepdim=True), columns(far.amax(-1, keepdim=True)))
    largest = largest.detach().clamp(min=torch.finfo(near.dtype).min)  # -inf - -inf would be NaN
    near.sub_(largest).exp_()
    far.sub_(columns(largest)).exp_()
    total = near.sum(-1, keepdim=True) + columns(far.sum(-1, keepdim=True))
    output = (near @ near_values).add_(columns(far @ far_values))
    output = output / torch.where(total == 0, 1.0, total)  # nothing to attend to: 0 / 1
    return output.flatten(-3, -2)[..., :seq, :]
