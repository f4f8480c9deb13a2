"""Scaled dot-product attention (chapters 4, 5 and 6)."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import (
    require_dropout,
    require_mask,
    require_same_sequences,
    require_vectors,
)


def scaled_dot_product_attention(
    query: Float[Tensor, "*batch query d_key"],
    key: Float[Tensor, "*batch key d_key"],
    value: Float[Tensor, "*batch key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    dropout: float = 0.0,
    scale: float | None = None,
) -> tuple[Float[Tensor, "*batch query d_value"], Float[Tensor, "*batch query key"]]:
    """softmax(query · keyᵀ / √d_key) · value, and the weights: (output, weights).

    Args:
        query: (..., query, d_key).
        key: (..., key, d_key).
        value: (..., key, d_value).
        mask: boolean, True = may attend; (query, key), or as many axes as the weights, with size 1
            where it is the same for all. A query that may attend to nothing gets weights 0, output
            0 and finite gradients.
        dropout: the probability that a weight is dropped. It is applied whenever it is above 0, so
            pass 0 outside training. The weights returned are the ones that were used: after dropout
            a row need not sum to 1.
        scale: what the dot products are multiplied by; 1/√d_key unless given.

    Returns:
        output (..., query, d_value) and weights (..., query, key).

    Raises:
        ValueError: for shapes that do not fit.
        TypeError: for integer tensors and for masks that are not boolean.

    Source:
        Vaswani et al. 2017, §3.2.1, equation 1.

    Example:
        >>> import torch
        >>> from attention import scaled_dot_product_attention
        >>> query, key = torch.tensor([[0.0, 2.0]]), torch.eye(2)
        >>> value = torch.tensor([[10.0], [20.0]])
        >>> scaled_dot_product_attention(query, key, value)
        (tensor([[18.0443]]), tensor([[0.1956, 0.8044]]))
    """
    require_vectors("query", query, "... query d_key")
    require_vectors("key", key, "... key d_key", last=query.shape[-1])
    require_vectors("value", value, "... key d_value")
    require_same_sequences(query, key, value)
    require_dropout(dropout)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])

    # Scaling the queries scales every score. It takes d_key products per query instead of one per
    # key, and no score grows too large for float16 on the way.
    scores = (query * scale) @ key.transpose(-2, -1)  # (..., query, key)
    weights = masked_softmax(scores, mask)
    if dropout > 0.0:
        weights = F.dropout(weights, dropout)
    return weights @ value, weights


def masked_softmax(
    scores: Float[Tensor, "*batch query key"], mask: Bool[Tensor, "..."] | None
) -> Float[Tensor, "*batch query key"]:
    """The weights of these scores, 0 where the mask is False, in rows that see nothing too.

    Without gradients the scores may be overwritten: hand over what nobody else holds.
    """
    if mask is not None:
        require_mask(mask, tuple(scores.shape))
        # The lowest number, not -inf: softmax turns a row of -inf into NaN, in its gradient too.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    # On a CPU, fresh memory of this size takes longer than the softmax itself. Where no gradient is
    # asked for, nobody needs the scores any more, and the weights are written over them.
    overwrite = scores.is_cpu and not torch.is_grad_enabled()
    weights = torch.softmax(scores, dim=-1, out=scores if overwrite else None)
    if mask is not None:
        # Only rows with nothing to attend to change here: softmax has made them uniform.
        weights = weights.masked_fill(~mask, 0.0)
    return weights


def fused_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads query d_value"]:
    """The same output through torch's fused kernel, which takes the keys block by block.

    No tensor of query × key numbers is made, with two exceptions, both torch's: it turns a boolean
    mask into numbers of the mask's own shape (little for a padding mask, one matrix for all heads
    for a causal one), and on a CPU it has no fused kernel with dropout and makes the scores after
    all.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        mask: as for `scaled_dot_product_attention`.
        dropout: as for `scaled_dot_product_attention`.

    Returns:
        The output, (batch, heads, query, d_value).

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
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    require_mask(mask, (*query.shape[:-1], key.shape[-2]))
    # What a kernel makes of a row with nothing to attend to depends on the kernel and on torch's
    # version. So such a row may attend to everything, and its output is set to 0 afterwards.
    sees = mask.any(dim=-1, keepdim=True)  # (..., query, 1)
    output = F.scaled_dot_product_attention(query, key, value, mask | ~sees, dropout)
    return output.masked_fill(~sees, 0.0)
