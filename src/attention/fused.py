"""Scaled dot-product attention by torch's fused kernel: the same output, without the weights."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import require_dropout, require_heads
from attention.masks import with_causal


def fused_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    dropout: float = 0.0,
    causal: bool = False,
) -> Float[Tensor, "batch heads query d_value"]:
    """Scaled dot-product attention by torch's fused kernel, which takes the keys block by block.

    No tensor of query × key numbers is made, with two exceptions, both due to PyTorch. It turns a
    boolean mask into numbers of the mask's own shape, which are few for a padding mask, and one
    matrix for all heads for a causal one. And on a CPU it has no fused kernel with dropout, so
    there it makes the scores. Gradients of gradients depend on PyTorch too: its fused kernels have
    none.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        mask: as for `scaled_dot_product_attention`.
        dropout: as for `scaled_dot_product_attention`.
        causal: hides the future, as `causal_mask` does. If there are as many queries as keys and no
            mask is given as well, the kernel skips the blocks that lie in the future, which saves
            half of the work. Under mask=causal_mask(n) it computes them, and needs the mask's
            numbers.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError, TypeError: as `scaled_dot_product_attention` does.

    Source:
        Dao et al. 2022 for the algorithm.

    Example:
        >>> import torch
        >>> from attention import causal_mask, fused_attention, scaled_dot_product_attention
        >>> query, key, value = torch.randn(3, 2, 4, 5, 8, dtype=torch.float64)
        >>> expected, _ = scaled_dot_product_attention(query, key, value, causal_mask(5))
        >>> torch.allclose(fused_attention(query, key, value, causal_mask(5)), expected)
        True
    """
    require_heads(query, key, value, mask)
    require_dropout(dropout)
    return attend_fused(query, key, value, mask, dropout=dropout, causal=causal)


def attend_fused(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    bias: Float[Tensor, "heads query key"] | None = None,
    dropout: float = 0.0,
    causal: bool = False,
) -> Float[Tensor, "batch heads query d_value"]:
    """`fused_attention` without its argument checks, and with a bias on the scores.

    The bias is a matrix of query × key numbers for each head. If each sentence has a mask of its
    own, there is such a matrix for each head of each sentence.
    """
    if bias is not None:
        bias = bias[None].to(query.dtype)  # torch's kernel on a CPU asks for four axes
    # PyTorch's is_causal aligns the first query with the first key.
    extra = mask is not None or bias is not None
    if causal and (extra or query.shape[-2] != key.shape[-2]):
        mask, causal = with_causal(mask, query, key), False
    if mask is None:
        return F.scaled_dot_product_attention(
            query, key, value, bias, dropout_p=dropout, is_causal=causal
        )
    # What a kernel makes of a row with nothing to attend to depends on the kernel and on torch's
    # version. So such a row may attend to everything, and its output is set to 0 afterwards.
    sees = mask.any(dim=-1, keepdim=True)  # (..., query, 1)
    allowed = mask | ~sees
    if bias is not None:
        allowed = torch.where(allowed, bias, -torch.inf)
    output = F.scaled_dot_product_attention(query, key, value, allowed, dropout)
    return output.masked_fill(~sees, 0.0)


def attend_by_distance(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch kv_heads key d_key"],
    value: Float[Tensor, "batch kv_heads key d_value"],
    bias: Float[Tensor, "heads distance"],
    *,
    dropout: float,
    causal: bool,
) -> Float[Tensor, "batch heads query d_value"]:
    """`attend_in_groups` with a bias for each distance, of which no matrix is made.

    bias: as `LinearBias.by_distance` gives it. There are at most as many queries as keys.
    """
    n_keys = key.shape[-2]
    if causal:
        future = torch.arange(bias.shape[-1], device=bias.device) >= n_keys
        bias = bias.masked_fill(future, -torch.inf)
    # Each row holds the numbers of the row below it, shifted by one, so all rows are windows of one
    # vector, which the kernel reads in place. A view can go through a vector in its own direction
    # only, so the last query comes first.
    rows = bias.to(query.dtype).unfold(-1, n_keys, 1)[None]  # (1, heads, query, key)
    options = {"dropout_p": dropout, "enable_gqa": query.shape[1] != key.shape[1]}
    return F.scaled_dot_product_attention(query.flip(-2), key, value, rows, **options).flip(-2)
