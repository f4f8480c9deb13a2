"""Fixed attention (Sparse Transformer): the query's own row, and the keys that sum up earlier rows.

Cut the sequence into rows of `stride` tokens. A query attends to the keys of its own row up to
itself, and to the last few keys of every earlier row. With one such key for each row, it attends to
at most stride + n/stride keys, which is of the order of √n where stride is. Time and memory then
grow as n·√n. Two layers connect a query with every earlier key, because the last keys of a row see
the whole row, and every later query sees them. The pattern is causal. The positions of the summary
keys do not depend on the query, which suits text, where columns mean nothing. The output equals
dense attention under the pattern's mask.

The paper gives the two halves to two heads, to two layers or to one merged head (§5.1). This module
computes the merged head. All heads see the same summary keys, the last ones of a row. The paper
found it better if heads see distinct groups of `summary` keys of a row (§4.3).
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention.arguments import require_size
from attention.sparse.blocks import attend_gathered, require_self_attention


def fixed_mask(
    seq: int, stride: int, summary: int = 1, *, device: torch.device | str | None = None
) -> Bool[Tensor, "seq seq"]:
    """True for the query's own row up to itself and the last `summary` keys of every earlier row.

    Args:
        seq: how many tokens.
        stride: how many keys a row has.
        summary: how many keys at the end of each row are seen by all later rows; the paper's c.
        device: where the mask is made; torch's default unless given.

    Returns:
        The mask, (query, key).

    Raises:
        ValueError: for more summary keys than a row has.

    Source:
        Child et al. 2019, §4.3 and figure 3c.

    Example:
        >>> from attention import fixed_mask
        >>> fixed_mask(6, 3)[4].int()
        tensor([0, 0, 1, 1, 1, 0], dtype=torch.int32)
    """
    require_size("seq", seq)
    require_summary(stride, summary)
    key = torch.arange(seq, device=device)
    query = key[:, None]
    return (key <= query) & (
        (key // stride == query // stride) | (key % stride >= stride - summary)
    )


def require_summary(stride: int, summary: int) -> None:
    """Require no more summary keys than a row has keys."""
    require_size("stride", stride)
    require_size("summary", summary)
    if summary > stride:
        raise ValueError(f"summary={summary} keys do not fit in a row of stride={stride} keys")


def fixed_attention(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    stride: int,
    summary: int = 1,
) -> Float[Tensor, "batch heads seq d_value"]:
    """Attend to the query's own row up to itself and to the last keys of every earlier row.

    The output equals attention under `fixed_mask(seq, stride, summary)`.

    Args:
        query: (batch, heads, seq, d_key).
        key: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        mask: which keys are not padding, (batch, 1, 1, seq) as `padding_mask` makes it. A query
            that may attend to nothing gets output 0.
        stride: how many keys a row has.
        summary: how many keys at the end of each row are seen by all later rows. The paper takes 8,
            16 or 32 where stride is 128 or 256. With 1, the default here, the paper finds the
            pattern too weak (§4.3).

    Returns:
        The output, one vector for each query.

    Raises:
        ValueError: for more summary keys than a row has, different numbers of queries and keys, and
            a mask that differs between queries.

    Cost:
        O(n · (stride + summary · n/stride) · d_key) time. A row gathers its keys once for all its
        queries, which takes O(n · (stride + summary · n/stride) · (1 + d_key / stride)) memory.
        torch.export takes one length at a time: how many rows are computed follows from it.

    Source:
        Child et al. 2019, §4.3; summary is the paper's c.

    Example:
        >>> import torch
        >>> from attention import fixed_attention, fixed_mask, fused_attention
        >>> x = torch.randn(1, 2, 100, 8)
        >>> output = fixed_attention(x, x, x, stride=10, summary=2)
        >>> torch.allclose(output, fused_attention(x, x, x, fixed_mask(100, 10, 2)), atol=1e-5)
        True
    """
    require_self_attention(query, key, value, mask, "fixed attention")
    require_summary(stride, summary)
    seq, device = query.shape[-2], query.device
    stride = min(stride, seq)
    n_rows = math.ceil(seq / stride)
    row = torch.arange(n_rows, device=device)[:, None]
    own = row * stride + torch.arange(stride, device=device)  # (n_rows, stride)
    summaries = own[:, -summary:].flatten()  # the last keys of every row

    # Each row lists its own keys and the summary keys of all rows, and sees those of earlier rows.
    listed = torch.cat([own, summaries.expand(n_rows, -1)], dim=1).clamp(max=seq - 1)
    sees_own = own[:, None] <= own[:, :, None]  # (n_rows, stride, stride)
    sees_summaries = (summaries // stride < row)[:, None].expand(-1, stride, -1)
    allowed = torch.cat([sees_own, sees_summaries], dim=2)
    return attend_gathered(query, key, value, listed, allowed, mask)
