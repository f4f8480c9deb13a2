"""Scaled dot-product attention (chapters 4 and 6)."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.checks import check_dropout, check_keys_and_values, check_mask, check_vectors


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

    query (..., query, d_key), key (..., key, d_key), value (..., key, d_value)
    -> output (..., query, d_value), weights (..., query, key).

    mask: boolean, True = may attend; (query, key), or as many axes as the weights with 1 for "the same for
        all". A query that may attend to nothing gets weights 0 and output 0, and finite gradients.
    dropout: the probability that a weight is dropped; it is applied whenever it is above 0, so pass 0 outside
        training. The weights returned are those that were used: after dropout, rows need not sum to 1.
    scale: what the dot products are multiplied by; 1/√d_key unless given.

    Raises ValueError or TypeError for shapes that do not fit, integer tensors and masks that are not boolean.
    Source: Vaswani et al. 2017, §3.2.1, equation 1.
    """
    check_vectors("query", query, "... query d_key")
    check_vectors("key", key, "... key d_key", last=query.shape[-1])
    check_vectors("value", value, "... key d_value")
    check_keys_and_values(query, key, value)
    check_dropout(dropout)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])

    # Scaling the queries scales every score: d_key products per query instead of one per key, and no score
    # grows too large for float16 on the way.
    scores = (query * scale) @ key.transpose(-2, -1)  # (..., query, key)
    if mask is not None:
        check_mask(mask, tuple(scores.shape))
        # The most negative number, not -inf: softmax of a row of -inf is NaN, and its gradient too.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        # Changes only rows with nothing to attend to: there the softmax is uniform.
        weights = weights.masked_fill(~mask, 0.0)
    if dropout > 0.0:
        weights = F.dropout(weights, dropout)
    # The product may be in a lower precision than the softmax: under autocast weights are float32.
    return weights @ value, weights
