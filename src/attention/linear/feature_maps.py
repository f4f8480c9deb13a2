"""Attention through features: weights φ(q)·φ(k) instead of exp(q·k), summed in another order.

Scaled dot-product attention gives value j the weight exp(q·k_j / √d_key), so every query meets
every key. If the weight is a dot product of features, φ(q)·φ(k_j), the sums over the keys can be
taken first: Σ φ(k_j) v_jᵀ, one matrix of features × d_value numbers for all queries, and Σ φ(k_j)
for the normaliser. No matrix of weights is made, and time and memory grow as n.

Causal attention needs a sum of its own for each query, over the keys up to that query. The sum is
carried from chunk to chunk, and within a chunk the weights are made after all. The modules that use
this one choose the features.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention.arguments import require_finite, require_heads, require_padding_mask, require_size
from attention.masks import kept_keys
from attention.precision import summed_in_float32

CHUNK = 128  # tokens whose features are held at a time; they stay in the processor's cache


def require_key_mask(mask: Tensor | None, scores: tuple[int, ...], mechanism: str) -> None:
    """Require a mask of keys alone: no weight of a single query and key is made."""
    if mask is not None:
        hides_the_future = f"{mechanism}, which hides the future with causal=True alone,"
        require_padding_mask(mask, scores, hides_the_future)


def require_feature_map_inputs(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, mechanism: str
) -> None:
    """Require query, key and value per head, and what attention through features can hide."""
    require_heads(query, key, value)
    require_hideable(query, key, mask, causal, mechanism)


def require_hideable(
    query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, mechanism: str
) -> None:
    """Require a mask of keys alone, and one query for each key where the future is hidden."""
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    if causal and n_queries != n_keys:
        raise ValueError(
            f"causal=True needs one query for each key, got {n_queries} queries and {n_keys} keys; "
            "to go on after earlier tokens, carry their sums with linear_attention_step"
        )
    require_key_mask(mask, (*query.shape[:-1], n_keys), mechanism)


def kernel_attention(
    query: Float[Tensor, "batch heads query width"],
    key: Float[Tensor, "batch heads key width"],
    value: Float[Tensor, "batch heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    feature_map: Callable[[Tensor], Tensor] = lambda x: x,
    causal: bool = False,
    chunk: int = CHUNK,
    least: float = 0.0,
) -> Float[Tensor, "batch heads query d_value"]:
    """Σ_j (φ(q) · φ(k_j)) v_j / Σ_j φ(q) · φ(k_j), over the keys j that the query may see.

    Args:
        query: (batch, heads, query, width).
        key: (batch, heads, key, width).
        value: (batch, heads, key, d_value).
        mask: which keys are not padding, (batch, 1, 1, key) as `padding_mask` makes it. A query
            that may attend to nothing gets output 0.
        feature_map: φ, (…, width) to (…, features). If none is given, query and key are features
            already.
        causal: whether query i attends to the keys up to i only; there are as many keys as queries.
        chunk: how many tokens are taken at once. It changes the cost, not the result: features are
            held for one chunk at a time, and stay in the processor's cache.
        least: the least weight that a key can have. Where features only estimate the weights, their
            sum can come out near 0 or below. The sum is then replaced by `least` for every key that
            the query sees.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError: for a mask that differs between queries, and for shapes that do not fit.

    Cost:
        O(n · features · d_value) time; causal, O(n · chunk · (features + d_value)) more. Memory
        O(features · d_value) besides input and output; with gradients, O(n · (features + d_value)),
        and causal, O(n · chunk + n / chunk · features · d_value) more. float16 and bfloat16 are
        summed in float32, for which the inputs are copied.
        torch.export takes one length at a time, because the length decides how many chunks are
        computed.

    Source:
        Katharopoulos et al. 2020, §3.2 and §3.3; chunks: Hua et al. 2022.

    Example:
        >>> import torch
        >>> from attention import kernel_attention
        >>> query, key = torch.rand(2, 1, 1, 4, 3)
        >>> value = torch.randn(1, 1, 4, 2)
        >>> weights = query @ key.transpose(-2, -1)
        >>> weights = weights / weights.sum(-1, keepdim=True)
        >>> torch.allclose(kernel_attention(query, key, value), weights @ value, atol=1e-5)
        True
    """
    require_feature_map_inputs(query, key, value, mask, causal, "kernel_attention")
    require_size("chunk", chunk)
    require_finite("least", least)
    if least < 0.0:
        raise ValueError(f"least is the least weight of a key, at least 0, got {least}")
    if not callable(feature_map):
        kind = type(feature_map).__name__
        raise TypeError(f"feature_map must be a function from vectors to features, got {kind}")
    return attend_through_features(
        query, key, value, mask, feature_map=feature_map, causal=causal, chunk=chunk, least=least
    )


@summed_in_float32
def attend_through_features(
    query: Float[Tensor, "batch heads query width"],
    key: Float[Tensor, "batch heads key width"],
    value: Float[Tensor, "batch heads key d_value"],
    mask: Bool[Tensor, "..."] | None,
    *,
    feature_map: Callable[[Tensor], Tensor],
    key_map: Callable[[Tensor, Tensor], Tensor] | None = None,
    causal: bool = False,
    chunk: int = CHUNK,
    least: float = 0.0,
) -> Float[Tensor, "batch heads query d_value"]:
    """`kernel_attention` without its argument checks.

    `key_map` maps keys, and which of them are kept, to features that are 0 where a key is not kept.
    If it is not given, the keys have the feature map of the queries.
    """
    if key_map is None:

        def key_map(k: Tensor, kept: Tensor) -> Tensor:
            return feature_map(k) if mask is None else feature_map(k).masked_fill(~kept, 0.0)

    def chunks(*tensors: Tensor) -> zip:
        return zip(*(x.split(chunk, dim=2) for x in tensors), strict=True)

    def divided(weighted: Tensor, total: Tensor, least_total: Tensor) -> Tensor:
        total = total.maximum(least_total)
        # A product: the gradient of a quotient would divide all of `weighted` twice more.
        return weighted * torch.where(total == 0, 1.0, total).reciprocal()

    kept = kept_keys(key, mask)
    n_seen = kept.cumsum(2) if causal else kept.sum(2, keepdim=True)
    least_totals = n_seen.to(value.dtype) * least
    # Σ φ(k) vᵀ, (batch, heads, features, d_value), and Σ φ(k), (batch, heads, features, 1).
    values, keys, outputs = 0.0, 0.0, []
    if not causal:
        for k, v, keep in chunks(key, value, kept):
            k = key_map(k, keep).transpose(-2, -1)
            values, keys = values + k @ v, keys + k.sum(-1, keepdim=True)
        for (q,) in chunks(query):
            q = feature_map(q)
            outputs.append(divided(q @ values, q @ keys, least_totals))
    else:
        for q, k, v, keep, least_total in chunks(query, key, value, kept, least_totals):
            q, k = feature_map(q), key_map(k, keep).transpose(-2, -1)
            weights = (q @ k).tril()
            weighted, total = weights @ v, weights.sum(-1, keepdim=True)  # within the chunk
            if outputs:
                weighted, total = weighted + q @ values, total + q @ keys  # the chunks before
            values, keys = values + k @ v, keys + k.sum(-1, keepdim=True)
            outputs.append(divided(weighted, total, least_total))
    return torch.cat(outputs, dim=2)
