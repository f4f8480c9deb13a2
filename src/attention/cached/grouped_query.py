"""Grouped-query attention: several query heads share one head of keys and values.

Multi-head attention gives every query head its own keys and values. Here n_heads / n_kv_heads
consecutive query heads attend to the same ones. n_kv_heads = n_heads is multi-head attention,
n_kv_heads = 1 is multi-query attention.

Scores and weights are as many as before, and so is the work on them. Two projections get smaller,
by the factor n_heads / n_kv_heads, and so does the key-value cache, which a decoder reads from end
to end for every token.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    require_divides,
    require_dropout,
    require_mask,
    require_module,
    require_n_heads,
    require_same_sequences,
    require_sequences,
    require_vectors,
)
from attention.cached.key_value_cache import KeyValueCache
from attention.cached.rolling_cache import RollingCache
from attention.dot_product import attend, attend_fused, require_plain
from attention.heads import merge, split
from attention.masks import with_causal
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


def attend_in_groups(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch kv_heads key d_key"],
    value: Float[Tensor, "batch kv_heads key d_value"],
    mask: Bool[Tensor, "..."] | None,
    *,
    dropout: float,
    causal: bool,
    need_weights: bool,
) -> tuple[
    Float[Tensor, "batch heads query d_value"], Float[Tensor, "batch heads query key"] | None
]:
    """`grouped_attention` without its argument checks."""
    batch, n_heads, n_queries, d_key = query.shape
    n_kv_heads = key.shape[1]
    group = n_heads // n_kv_heads
    if causal and mask is None and not need_weights and n_queries == key.shape[-2]:
        # Each query head stands for itself here, so that torch can skip what lies in its future.
        return F.scaled_dot_product_attention(
            query, key, value, dropout_p=dropout, is_causal=True, enable_gqa=True
        ), None
    if causal and n_queries > 1:  # the last query sees every key
        mask = with_causal(mask, query, key)
    # The queries of a group's heads become more queries of the one head whose keys they share.
    query = query.reshape(batch, n_kv_heads, group * n_queries, d_key)
    if mask is not None:
        mask = mask[(None,) * (4 - mask.ndim)]
        if mask.shape[1:3] != (1, 1):  # a mask of keys alone is the same for all queries anyway
            heads = (n_kv_heads, group) if mask.shape[1] > 1 else (1, 1)
            mask = mask.unflatten(1, heads).expand(-1, -1, group, n_queries, -1).flatten(2, 3)
    rows = (batch, n_heads, n_queries)
    if not need_weights:
        output = attend_fused(query, key, value, mask, dropout=dropout)
        return output.reshape(*rows, value.shape[-1]), None
    output, weights = attend(query, key, value, mask, dropout=dropout)
    return output.reshape(*rows, value.shape[-1]), weights.reshape(*rows, key.shape[-2])


class GroupedQueryAttention(nn.Module):
    """`MultiHeadAttention` with n_kv_heads heads of keys and values for n_heads heads of queries.

    Parameters by name: `w_q` and `w_o` (d_model, d_model), `w_k` and `w_v` (n_kv_heads · d_key,
    d_model), each with `.weight` and `.bias`.

    Args:
        d_model, n_heads, dropout, bias: as there.
        n_kv_heads: divides n_heads.

    Source:
        Ainslie et al. 2023; Shazeer 2019 for n_kv_heads = 1.

    Example:
        >>> import torch
        >>> from attention import GroupedQueryAttention, causal_mask
        >>> attention = GroupedQueryAttention(d_model=16, n_heads=4, n_kv_heads=2)
        >>> x, cache = torch.randn(1, 3, 16), attention.new_cache(batch=1, max_length=3)
        >>> with torch.no_grad():
        ...     tokens = [attention(x[:, i : i + 1], cache=cache)[0] for i in range(3)]
        >>> torch.allclose(torch.cat(tokens, 1), attention(x, mask=causal_mask(3))[0], atol=1e-6)
        True
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        n_kv_heads: int,
        *,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
        require_divides("n_kv_heads", n_kv_heads, "n_heads", n_heads)
        require_dropout(dropout)
        self.d_model, self.n_heads, self.n_kv_heads = d_model, n_heads, n_kv_heads
        self.d_key, self.dropout = d_model // n_heads, dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, n_kv_heads * self.d_key, bias=bias)
        self.w_v = nn.Linear(d_model, n_kv_heads * self.d_key, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"] | None = None,
        value: Float[Tensor, "batch key d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: KeyValueCache | RollingCache | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query _"] | None]:
        """Attend from every query to the keys.

        Args:
            query: (batch, query, d_model).
            key: (batch, key, d_model); the queries unless given.
            value: (batch, key, d_model); the keys unless given.
            mask: as in `MultiHeadAttention.forward`.
            causal: as in `MultiHeadAttention.forward`.
            cache: takes the keys and values of these tokens, which then attend to all that it
                holds. The axis `key` of the weights and of the mask counts all of them. Pass
                causal=True with several tokens; one alone has no future to hide. A `RollingCache`
                keeps the last tokens and the first, and takes no mask.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, query, d_model) and weights (batch, heads, query, key).

        Raises:
            ValueError, TypeError: as `MultiHeadAttention.forward` and `KeyValueCache.append` do,
                and for a cache in cross-attention and a mask beside a `RollingCache`. A call that
                is refused leaves the cache as it was.
        """
        if not isinstance(cache, KeyValueCache | RollingCache | None):
            raise TypeError(
                "cache must be a KeyValueCache, a RollingCache or None, got "
                f"{type(cache).__name__}; new_cache(batch, max_length) makes a KeyValueCache"
            )
        if isinstance(cache, RollingCache) and mask is not None:
            raise ValueError(
                "a RollingCache takes no mask: it drops tokens, and its keys stand in no order, so "
                "that a mask's columns would hide others than they mean; call without mask, with "
                "causal=True for several tokens, or with a KeyValueCache"
            )
        if cache is not None and not (key is None and value is None):
            raise ValueError(
                "a cache is for self-attention, where each step adds keys, got key or value too; "
                "in cross-attention the keys stay the same: call without cache"
            )
        key = query if key is None else key
        value = key if value is None else value
        require_sequences(self, query, key, value, None)
        if mask is not None:
            n_keys = key.shape[1] + (0 if cache is None else cache.length)
            require_mask(mask, (query.shape[0], self.n_heads, query.shape[1], n_keys))

        q = split(self.w_q(query), self.n_heads)  # (batch, heads, query, d_key)
        k = split(self.w_k(key), self.n_kv_heads)  # (batch, kv_heads, key, d_key)
        v = split(self.w_v(value), self.n_kv_heads)  # (batch, kv_heads, key, d_key)
        if cache is not None:
            k, v = cache.append(k, v)
        dropout = self.dropout if self.training else 0.0
        attended, weights = attend_in_groups(
            q, k, v, mask, dropout=dropout, causal=causal, need_weights=need_weights
        )
        return self.w_o(merge(attended)), weights

    def new_cache(self, batch: int, max_length: int) -> KeyValueCache:
        """Make an empty cache for this layer, with its heads, width, dtype and device.

        Under autocast it has the dtype that autocast gives to the keys and values.
        """
        device, dtype = self.w_k.weight.device, self.w_k.weight.dtype
        if torch.is_autocast_enabled(device.type):
            dtype = torch.get_autocast_dtype(device.type)
        return KeyValueCache(
            batch, self.n_kv_heads, max_length, self.d_key, dtype=dtype, device=device
        )

    @classmethod
    def from_multi_head(
        cls, module: MultiHeadAttention, n_kv_heads: int
    ) -> "GroupedQueryAttention":
        """Copy a `MultiHeadAttention`, each group's key and value heads replaced by their mean.

        Exact where the heads of a group are equal; else a start for further training (Ainslie et
        al. 2023, §2.1). dtype, device, dropout and training mode are kept.

        Raises:
            ValueError: n_kv_heads does not divide n_heads, or the module does not attend by a plain
                `DotProduct`.
        """
        require_module("module", module, MultiHeadAttention)
        require_plain(module.attend)
        dropout = module.attend.dropout
        bias = module.w_q.bias is not None
        ours = cls(module.d_model, module.n_heads, n_kv_heads, dropout=dropout, bias=bias)
        ours.to(module.w_q.weight).train(module.training)
        for name, w in ours.named_children():
            state = getattr(module, name).state_dict()  # weight, and bias where there is one
            if name in ("w_k", "w_v"):
                heads = (n_kv_heads, -1, ours.d_key)  # (kv_heads, group, d_key) instead of rows
                state = {k: x.unflatten(0, heads).mean(1).flatten(0, 1) for k, x in state.items()}
            w.load_state_dict(state)
        return ours

    def extra_repr(self) -> str:
        return (
            f"d_model={self.d_model}, n_heads={self.n_heads}, n_kv_heads={self.n_kv_heads}, "
            f"dropout={self.dropout}"
        )
