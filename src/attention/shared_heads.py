"""Dot-product attention whose query heads share heads of keys and values.

Multi-head attention gives every query head its own keys and values. Here a group of consecutive
query heads attends to the same ones. Scores and weights are as many as before, and so is the work
on them; only keys and values are fewer. `GroupedQueryAttention` puts the projections around it.
"""

from jaxtyping import Bool, Float
from torch import Tensor

from attention.arguments import check_divides, check_mask, check_same_sequences, check_vectors
from attention.dot_product import fused_attention, scaled_dot_product_attention


def grouped_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch kv_heads key d_key"],
    value: Float[Tensor, "batch kv_heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    dropout: float = 0.0,
    need_weights: bool = True,
) -> tuple[
    Float[Tensor, "batch heads query d_value"], Float[Tensor, "batch heads query key"] | None
]:
    """Attend with heads / kv_heads consecutive query heads to each head of keys and values.

    Keys and values are never repeated.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, kv_heads, key, d_key).
        value: (batch, kv_heads, key, d_value).
        mask: as in `scaled_dot_product_attention`.
        dropout: as in `scaled_dot_product_attention`.
        need_weights: as in `MultiHeadAttention.forward`.

    Returns:
        output (batch, heads, query, d_value) and weights (batch, heads, query, key).

    Raises:
        ValueError: where kv_heads does not divide heads, and for shapes that do not fit.

    Cost:
        O(heads · query · key · d_key) operations.

    Source:
        Ainslie et al. 2023, §2.2; Shazeer 2019, §3, for one kv_head.

    Example:
        >>> import torch
        >>> from attention import fused_attention, grouped_attention
        >>> query, key, value = torch.randn(1, 4, 5, 8), *torch.randn(2, 1, 2, 5, 8)
        >>> output, weights = grouped_attention(query, key, value)
        >>> repeated = key.repeat_interleave(2, dim=1), value.repeat_interleave(2, dim=1)
        >>> torch.allclose(output, fused_attention(query, *repeated), atol=1e-5)
        True
    """
    check_vectors("query", query, "batch heads query d_key")
    check_vectors("key", key, "batch kv_heads key d_key", last=query.shape[-1])
    check_vectors("value", value, "batch kv_heads key d_value")
    batch, n_heads, n_queries, d_key = query.shape
    n_kv_heads, n_keys = key.shape[1:3]
    check_divides("kv_heads", n_kv_heads, "heads", n_heads)
    if value.shape[1] != n_kv_heads:
        raise ValueError(
            "key and value must have the same kv_heads, "
            f"got key {tuple(key.shape)} and value {tuple(value.shape)}"
        )
    check_same_sequences(query[:, 0], key[:, 0], value[:, 0])
    group = n_heads // n_kv_heads

    # To the keys they share, the heads of a group are so many more queries.
    query = query.reshape(batch, n_kv_heads, group * n_queries, d_key)
    if mask is not None:
        check_mask(mask, (batch, n_heads, n_queries, n_keys))
        mask = mask[(None,) * (4 - mask.ndim)]
        if mask.shape[1:3] != (1, 1):  # a mask of keys alone is the same for all queries anyway
            heads = (n_kv_heads, group) if mask.shape[1] > 1 else (1, 1)
            mask = mask.unflatten(1, heads).expand(-1, -1, group, n_queries, -1).flatten(2, 3)
    if not need_weights:
        output = fused_attention(query, key, value, mask, dropout=dropout)
        return output.reshape(batch, n_heads, n_queries, -1), None
    output, weights = scaled_dot_product_attention(query, key, value, mask, dropout=dropout)
    rows = (batch, n_heads, n_queries, -1)
    return output.reshape(rows), weights.reshape(rows)
