"""Scaled dot-product attention (chapters 4, 5 and 6)."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    can_be_read,
    require_dropout,
    require_finite,
    require_heads,
    require_module,
    require_shape,
)
from attention.cached.key_value_cache import KeyValueCache
from attention.cached.rolling_cache import RollingCache
from attention.fused import attend_by_distance, attend_fused
from attention.masks import with_causal
from attention.precision import autocast_dtype


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
        mask: boolean, True = may attend; (query, key), or one axis for each axis of the weights,
            with size 1 to reuse the mask along it. A query that may attend to nothing gets weights
            0, output 0 and finite gradients.
        dropout: the probability that a weight is dropped. Any value above 0 takes effect, so pass 0
            outside training. The weights are returned after dropout, so a row need not sum to 1.
        scale: the factor on the dot products; 1/√d_key unless given.

    Returns:
        output (..., query, d_value) and weights (..., query, key).

    Raises:
        ValueError: the shapes do not fit.
        TypeError: a tensor holds integers, or the mask is not boolean.

    Cost:
        O(query · key · (d_key + d_value)) time and O(query · key) memory. Here scores, masked
        scores and weights are separate tensors, so that each line says one thing. PyTorch's own
        module adds the mask as it multiplies, and writes the weights over the scores where no
        gradient is asked for. Under a mask it takes two thirds of the time, and less where
        thousands of keys make new memory expensive.

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
    require_heads(query, key, value, mask, batch="...")
    require_dropout(dropout)
    if scale is not None:
        require_finite("scale", scale)
    return attend(query, key, value, mask, dropout=dropout, scale=scale)


def attend(
    query: Float[Tensor, "*batch query d_key"],
    key: Float[Tensor, "*batch key d_key"],
    value: Float[Tensor, "*batch key d_value"],
    mask: Bool[Tensor, "..."] | None,
    *,
    bias: Float[Tensor, "heads query key"] | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
) -> tuple[Float[Tensor, "*batch query d_value"], Float[Tensor, "*batch query key"]]:
    """`scaled_dot_product_attention` without its argument checks, and with a bias on the scores."""
    if bias is not None:  # a query whose bias hides every key sees nothing, as with a mask
        nothing = bias.amax(dim=-1, keepdim=True) == -torch.inf
        if not can_be_read(nothing) or nothing.any():
            mask = ~nothing if mask is None else mask & ~nothing
    scores = scaled_scores(query, key, bias, scale)  # (..., query, key)
    weights = masked_softmax(scores, mask)  # (..., query, key), each row sums to 1 or is 0
    if value.dtype is torch.float16 and autocast_dtype(value) is None:
        weights = weights.to(value.dtype)  # they are float32 so far
    weights = F.dropout(weights, dropout)  # with dropout 0, the weights themselves
    return weights @ value, weights  # (..., query, d_value)


def scaled_scores(
    query: Float[Tensor, "*batch query d_key"],
    key: Float[Tensor, "*batch key d_key"],
    bias: Float[Tensor, "heads query key"] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "*batch query key"]:
    """query · keyᵀ / √d_key, plus the bias: what softmax gets, before the mask.

    For float16, whose range ends at 65,504, the scores are float32, as inside a fused kernel.
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    # Scaling the queries scales every score, by d_key products per query instead of one per key.
    if (autocast_dtype(query) or query.dtype) is torch.float16:
        with torch.autocast(query.device.type, enabled=False):
            scores = (query.float() * scale) @ key.float().transpose(-2, -1)
    else:
        scores = (query * scale) @ key.transpose(-2, -1)  # (..., query, key)
    return scores if bias is None else scores + bias.to(scores.dtype)


def masked_softmax(
    scores: Float[Tensor, "*batch query key"], mask: Bool[Tensor, "..."] | None
) -> Float[Tensor, "*batch query key"]:
    """softmax over the keys that the mask allows; 0 for all others."""
    if mask is None:
        return scores.softmax(dim=-1)
    # The lowest number, not -inf: softmax turns a row of -inf, and its gradient, into NaN.
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(dim=-1)
    # A row with nothing to attend to is uniform now. Only such rows change here.
    return weights.masked_fill(~mask, 0.0)


def attend_in_groups(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch kv_heads key d_key"],
    value: Float[Tensor, "batch kv_heads key d_value"],
    mask: Bool[Tensor, "..."] | None,
    *,
    bias: Float[Tensor, "heads query key"] | None = None,
    dropout: float,
    causal: bool,
    need_weights: bool,
) -> tuple[
    Float[Tensor, "batch heads query d_value"], Float[Tensor, "batch heads query key"] | None
]:
    """`grouped_attention` without its argument checks, and with a bias on the scores."""
    batch, n_heads, n_queries, _ = query.shape
    n_kv_heads, n_keys = key.shape[1:3]
    if n_queries == 1:  # the last query sees every key
        causal = False
    if n_heads == n_kv_heads:
        if not need_weights:
            options = {"bias": bias, "dropout": dropout, "causal": causal}
            return attend_fused(query, key, value, mask, **options), None
        mask = with_causal(mask, query, key) if causal else mask
        return attend(query, key, value, mask, bias=bias, dropout=dropout)
    extra = mask is not None or bias is not None
    if causal and n_queries == n_keys and not (extra or need_weights):
        # Here each query head stays separate, so that torch can skip what lies in the future.
        return F.scaled_dot_product_attention(
            query, key, value, dropout_p=dropout, is_causal=True, enable_gqa=True
        ), None
    mask = with_causal(mask, query, key) if causal else mask
    query, mask, bias = in_groups(query, n_kv_heads, mask, bias)
    rows = (batch, n_heads, n_queries)
    if not need_weights:
        output = attend_fused(query, key, value, mask, bias=bias, dropout=dropout)
        return output.reshape(*rows, value.shape[-1]), None
    output, weights = attend(query, key, value, mask, bias=bias, dropout=dropout)
    return output.reshape(*rows, value.shape[-1]), weights.reshape(*rows, n_keys)


def in_groups(
    query: Float[Tensor, "batch heads query d_key"],
    n_kv_heads: int,
    mask: Bool[Tensor, "..."] | None,
    bias: Float[Tensor, "heads query key"] | None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The queries of a group's heads as more queries of the one head whose keys they share."""
    batch, n_heads, n_queries, d_key = query.shape
    group = n_heads // n_kv_heads
    query = query.reshape(batch, n_kv_heads, group * n_queries, d_key)
    if bias is not None:
        bias = bias.reshape(n_kv_heads, group * n_queries, bias.shape[-1])
    if mask is not None:
        mask = mask[(None,) * (4 - mask.ndim)]
        if mask.shape[1:3] != (1, 1):  # a mask of keys alone is the same for all queries anyway
            heads = (n_kv_heads, group) if mask.shape[1] > 1 else (1, 1)
            mask = mask.unflatten(1, heads).expand(-1, -1, group, n_queries, -1).flatten(2, 3)
    return query, mask, bias


class DotProduct(nn.Module):
    """Scaled dot-product attention as a module: what attends in `MultiHeadAttention`.

    Every other module that attends is called in the same way and can replace it: it gets q, k and v
    after the split, and returns each head's result and the weights, or None where it makes none.
    `Mechanism` turns a function into such a module, and `HeadGate` wraps one.

    Args:
        dropout: the probability that an attention weight is dropped, in training only.
        transform: a module that maps q and k to two tensors of their shapes before they meet, such
            as `Rotary` or `QKNorm`. With a cache that already holds keys it is also given `first`,
            the position of the first new key, since each key is transformed once, before it is
            kept.
        bias: a module that maps n_queries and n_keys to numbers (heads, query, key), which are
            added to the scaled scores before mask and softmax, such as `LinearBias`. Without
            weights it still costs a matrix of query × key numbers per head, unless no mask is given
            and the bias depends on the distance alone and says so by a method `by_distance`, as
            `LinearBias` does.

    Source:
        Vaswani et al. 2017, §3.2.1, equation 1.

    Example:
        >>> import torch
        >>> from attention import DotProduct, MultiHeadAttention, Rotary
        >>> rotary = DotProduct(transform=Rotary(d_key=4))
        >>> attention = MultiHeadAttention(d_model=8, n_heads=2, attend=rotary)
        >>> attention(torch.randn(3, 6, 8))[0].shape
        torch.Size([3, 6, 8])
    """

    def __init__(
        self,
        dropout: float = 0.0,
        *,
        transform: nn.Module | None = None,
        bias: nn.Module | None = None,
    ) -> None:
        super().__init__()
        require_dropout(dropout)
        for name, module in (("transform", transform), ("bias", bias)):
            if module is not None:
                require_module(name, module)
        self.dropout, self.transform, self.bias = dropout, transform, bias

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        v: Float[Tensor, "batch kv_heads key d_value"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: KeyValueCache | RollingCache | None = None,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch heads query d_value"], Float[Tensor, "batch heads query _"] | None
    ]:
        """Attend in every head.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key); each of these heads is shared by heads / kv_heads
                consecutive query heads.
            v: (batch, kv_heads, key, d_value).
            mask: as for `scaled_dot_product_attention`.
            causal: as for `fused_attention`, in addition to a mask.
            cache: takes k and v, and the queries attend to all that it holds. k is transformed
                once, before it is stored.
            need_weights: False returns None for the weights and computes as `fused_attention` does.

        Returns:
            output (batch, heads, query, d_value) and weights (batch, heads, query, key).

        Raises:
            ValueError: the bias does not have the shape (heads, query, key), or there is a bias and
                the cache is a `RollingCache`.
        """
        if self.bias is not None and isinstance(cache, RollingCache):
            raise ValueError(
                "a RollingCache takes no bias: its keys are in no order, and a bias counts them "
                "in the order of the cache; take a KeyValueCache, or Rotary, which turns each "
                "key once"
            )
        dropout = self.dropout if self.training else 0.0
        options = {"dropout": dropout, "causal": causal, "need_weights": need_weights}
        if self.bias is None:
            q, k, v = self.keep(q, k, v, cache)
            return attend_in_groups(q, k, v, mask, **options)
        kept = 0 if cache is None else cache.length
        n_queries, n_keys = q.shape[-2], kept + k.shape[-2]
        by_distance = getattr(self.bias, "by_distance", None)
        if torch.compiler.is_compiling():  # a compiler cannot make windows of an open length
            by_distance = None
        if not need_weights and by_distance and mask is None and n_queries <= n_keys:
            bias = by_distance(n_queries, n_keys)
            require_shape("bias", bias, (q.shape[1], n_queries + n_keys - 1), "heads distance")
            q, k, v = self.keep(q, k, v, cache)
            return attend_by_distance(q, k, v, bias, dropout=dropout, causal=causal), None
        bias = self.biases(q, n_keys)
        q, k, v = self.keep(q, k, v, cache)
        return attend_in_groups(q, k, v, mask, bias=bias, **options)

    def scores(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
    ) -> Float[Tensor, "batch heads query key"]:
        """The scores of these queries and keys: transformed, scaled, biased, and not masked."""
        bias = self.biases(q, k.shape[-2])
        q, k = transformed(self.transform, q, k)
        grouped, _, bias = in_groups(q, k.shape[1], None, bias)
        return scaled_scores(grouped, k, bias).reshape(*q.shape[:-1], k.shape[-2])

    def keep(
        self, q: Tensor, k: Tensor, v: Tensor, cache: KeyValueCache | RollingCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Transform q and k, and append k and v to what the cache holds."""
        if cache is None:
            return *transformed(self.transform, q, k), v
        options = {"first": cache.length} if cache.length else {}
        q, k = transformed(self.transform, q, k, **options)
        return q, *cache.append(k, v)

    def biases(self, q: Tensor, n_keys: int) -> Float[Tensor, "heads query key"] | None:
        """The bias on the scores of these queries."""
        if self.bias is None:
            return None
        _, n_heads, n_queries, _ = q.shape
        bias = self.bias(n_queries, n_keys)
        require_shape("bias", bias, (n_heads, n_queries, n_keys), "heads query key")
        if not bias.is_floating_point():
            raise TypeError(f"bias must return floating-point numbers, got {bias.dtype}")
        return bias

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"


def transformed(
    transform: nn.Module | None, q: Tensor, k: Tensor, **position: int
) -> tuple[Tensor, Tensor]:
    """Transform q and k, and check their shapes, since a single head would broadcast to all."""
    if transform is None:
        return q, k
    turned_q, turned_k = transform(q, k, **position)
    require_shape("the q of transform", turned_q, tuple(q.shape), "batch heads query d_key")
    require_shape("the k of transform", turned_k, tuple(k.shape), "batch heads key d_key")
    return turned_q, turned_k


def require_plain(attend: nn.Module) -> None:
    """Require a `DotProduct` without transform or bias, which is all that a copy can carry over."""
    if type(attend) is not DotProduct:
        raise ValueError(
            f"module attends by {type(attend).__name__}, which does not exist here; set "
            "module.attend = DotProduct() to copy the weights alone"
        )
    for name in ("transform", "bias"):
        if getattr(attend, name) is not None:
            raise ValueError(
                f"module.attend has a {name}, {type(getattr(attend, name)).__name__}, which does "
                f"not exist here; set module.attend.{name} = None to copy the weights alone"
            )
