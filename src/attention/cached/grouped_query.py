"""Grouped-query attention: several query heads share one head of keys and values.

Multi-head attention gives every query head its own keys and values. Here n_heads / n_kv_heads
consecutive query heads attend to the same keys and values. With n_kv_heads = n_heads this is
multi-head attention, and with n_kv_heads = 1 it is multi-query attention.

The number of scores and weights stays the same, and so does the work on them. Two projections get
smaller, by the factor n_heads / n_kv_heads, and so does the key-value cache, which a decoder reads
from end to end for every token. The argument n_kv_heads gives `MultiHeadAttention` fewer KV heads.
"""

from jaxtyping import Bool, Float
from torch import Tensor

from attention.arguments import (
    require_divides,
    require_dropout,
    require_mask,
    require_module,
    require_same_sequences,
    require_vectors,
)
from attention.dot_product import attend_in_groups, require_plain
from attention.multihead import MultiHeadAttention


def grouped_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch kv_heads key d_key"],
    value: Float[Tensor, "batch kv_heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    dropout: float = 0.0,
    causal: bool = False,
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
        causal: as in `fused_attention`.
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
    require_vectors("query", query, "batch heads query d_key")
    require_vectors("key", key, "batch kv_heads key d_key", last=query.shape[-1])
    require_vectors("value", value, "batch kv_heads key d_value")
    n_heads, n_kv_heads = query.shape[1], key.shape[1]
    require_divides("heads of key", n_kv_heads, "heads of query", n_heads)
    if value.shape[1] != n_kv_heads:
        raise ValueError(
            "key and value must have the same kv_heads, "
            f"got key {tuple(key.shape)} and value {tuple(value.shape)}"
        )
    require_same_sequences(query[:, 0], key[:, 0], value[:, 0])
    if mask is not None:
        require_mask(mask, (*query.shape[:-1], key.shape[-2]))
    require_dropout(dropout)
    return attend_in_groups(
        query, key, value, mask, dropout=dropout, causal=causal, need_weights=need_weights
    )


def pool_kv_heads(module: MultiHeadAttention, n_kv_heads: int) -> MultiHeadAttention:
    """Copy a layer with fewer KV heads, each the mean of those of its group.

    The copy is exact where the heads of a group are equal; otherwise it is a start for further
    training. dtype, device, dropout and training mode are kept.

    Args:
        module: a layer that attends by a plain `DotProduct`.
        n_kv_heads: how many KV heads the copy has; it must divide the KV heads of module.

    Raises:
        ValueError: n_kv_heads does not divide the KV heads of module, or the module attends by
            something else.

    Source:
        Ainslie et al. 2023, §2.1.

    Example:
        >>> from attention import MultiHeadAttention, pool_kv_heads
        >>> pool_kv_heads(MultiHeadAttention(d_model=8, n_heads=4), 1).w_k.weight.shape
        torch.Size([2, 8])
    """
    require_module("module", module, MultiHeadAttention)
    require_plain(module.attend)
    require_divides("n_kv_heads", n_kv_heads, "module.n_kv_heads", module.n_kv_heads)
    projections = {letter: getattr(module, f"w_{letter}") for letter in "qkvo"}
    ours = MultiHeadAttention(
        module.d_model,
        module.n_heads,
        n_kv_heads=n_kv_heads,
        d_key=module.d_key,
        dropout=module.attend.dropout,
        bias="".join(letter for letter, w in projections.items() if w.bias is not None),
    )
    ours.to(module.w_q.weight).train(module.training)
    for letter, w in projections.items():
        state = w.state_dict()  # weight, and bias where there is one
        if letter in "kv":
            heads = (n_kv_heads, -1, module.d_key)  # (kv_heads, group, d_key) instead of rows
            state = {k: x.unflatten(0, heads).mean(1).flatten(0, 1) for k, x in state.items()}
        getattr(ours, f"w_{letter}").load_state_dict(state)
    return ours
