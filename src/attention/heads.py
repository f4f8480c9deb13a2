"""Reading one matrix as several heads, and back (chapters 3 and 6)."""

from jaxtyping import Float
from torch import Tensor

from attention.arguments import require_n_heads, require_vectors


def split_heads(
    x: Float[Tensor, "batch seq d_model"], n_heads: int
) -> Float[Tensor, "batch {n_heads} seq d_key"]:
    """Read d_model columns as n_heads groups of d_key = d_model / n_heads columns.

    Head h holds the columns h·d_key to (h+1)·d_key - 1. The result is a view: it shares its storage
    with x.

    Args:
        x: (batch, seq, d_model).
        n_heads: how many heads; it must divide d_model.

    Raises:
        ValueError: n_heads does not divide d_model.

    Source:
        Vaswani et al. 2017, §3.2.2.

    Example:
        >>> import torch
        >>> from attention import split_heads
        >>> split_heads(torch.arange(8).view(1, 2, 4).float(), n_heads=2)
        tensor([[[[0., 1.],
                  [4., 5.]],
        <BLANKLINE>
                 [[2., 3.],
                  [6., 7.]]]])
    """
    require_vectors("x", x, "batch seq d_model")
    require_n_heads(x.shape[-1], n_heads)
    return split(x, n_heads)


def split(
    x: Float[Tensor, "batch seq d_model"], n_heads: int
) -> Float[Tensor, "batch {n_heads} seq d_key"]:
    """`split_heads` without its argument checks."""
    batch, seq, d_model = x.shape
    # The heads must be cut out of the last axis; only then may their axis move in front of seq.
    return x.view(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)


def merge_heads(
    x: Float[Tensor, "batch heads seq d_key"],
) -> Float[Tensor, "batch seq heads*d_key"]:
    """Put the heads of each token side by side again: the inverse of `split_heads`.

    Args:
        x: (batch, heads, seq, d_key).

    Returns:
        A copy, unless x is a transposed view already, like the result of `split_heads`.

    Source:
        Vaswani et al. 2017, §3.2.2 (Concat).

    Example:
        >>> import torch
        >>> from attention import merge_heads, split_heads
        >>> x = torch.randn(2, 5, 8)
        >>> torch.equal(merge_heads(split_heads(x, n_heads=4)), x)
        True
    """
    require_vectors("x", x, "batch heads seq d_key")
    return merge(x)


def merge(x: Float[Tensor, "batch heads seq d_key"]) -> Float[Tensor, "batch seq heads*d_key"]:
    """`merge_heads` without its argument checks."""
    batch, heads, seq, d_key = x.shape
    return x.transpose(1, 2).reshape(batch, seq, heads * d_key)


def for_each_head(
    x: Float[Tensor, "batch kv_heads key d_key"], n_heads: int
) -> Float[Tensor, "batch {n_heads} key d_key"]:
    """The keys or values for every query head: x itself, or each KV head repeated for its group."""
    group = n_heads // x.shape[1]
    return x if group == 1 else x.repeat_interleave(group, dim=1)
