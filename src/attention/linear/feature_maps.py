"""Attention through features: weights φ(q)·φ(k) instead of exp(q·k), summed in another order.

Scaled dot-product attention weighs value j by exp(q·k_j / √d_key), so that every query meets every
key. If the weight is a dot product of features, φ(q)·φ(k_j), then the sums over the keys can be
taken first: Σ φ(k_j) v_jᵀ, one matrix of features × d_value numbers for all queries, and Σ φ(k_j)
for the normaliser. No matrix of weights is made, and time and memory grow as n. Causal, every query
has a matrix of its own, the sum so far: it is carried from chunk to chunk, and within a chunk the
weights are made after all. Which features to take is the business of the modules that use this one.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import (
    require_padding_mask,
    require_same_sequences,
    require_size,
    require_vectors,
)


def require_feature_map_inputs(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, mechanism: str
) -> None:
    """Refuse shapes that do not fit and masks that need the weight of a single query and key."""
    require_vectors("query", query, "batch heads query d_key")
    require_vectors("key", key, "batch heads key d_key", last=query.shape[-1])
    require_vectors("value", value, "batch heads key d_value")
    require_same_sequences(query, key, value)
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    if causal and n_queries != n_keys:
        raise ValueError(
            f"causal=True needs one query for each key, got {n_queries} queries and {n_keys} keys; "
            "to go on after earlier tokens, carry their sums with linear_attention_step"
        )
    if mask is not None:
        hides_the_future = f"{mechanism}, which hides the future with causal=True alone,"
        require_padding_mask(mask, (*query.shape[:-1], n_keys), hides_the_future)


def kernel_attention(
    query: Float[Tensor, "batch heads query width"],
    key: Float[Tensor, "batch heads key width"],
    value: Float[Tensor, "batch heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    feature_map: Callable[[Tensor], Tensor] = lambda x: x,
    causal: bool = False,
    chunk: int = 128,
    least: float = 0.0,
) -> Float[Tensor, "batch heads query d_value"]:
    """Σ_j (φ(q) · φ(k_j)) v_j / Σ_j φ(q) · φ(k_j), over the keys j that the query may see.

    Args:
        query: (batch, heads, query, width).
        key: (batch, heads, key, width).
        value: (batch, heads, key, d_value).
        mask: which keys are no padding, (batch, 1, 1, key). A query that may attend to nothing gets
            0.
        feature_map: φ, (…, width) to (…, features). Unless given, query and key are features
            already.
        causal: whether query i attends to the keys up to i only; there are as many keys as queries.
        chunk: how many tokens are taken at once. It changes the cost, not the result: what lies
            between the input and the output is never larger than a chunk and stays in the
            processor's cache.
        least: the least weight that a key can have. Where features only estimate the weights, their
            sum can come out near 0 or below; then it counts as `least` for every key that the query
            sees.

    Returns:
        The output, (batch, heads, query, d_value).

    Cost:
        O(n · features · d_value) time; causal, O(n · chunk · (features + d_value)) more. Memory
        O(features · d_value) besides input and output; with gradients, O(n · (features + d_value)),
        and causal, O(n · chunk + n / chunk · features · d_value) more.

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
    require_size("chunk", chunk)
    shape = (1, 1, 1, key.shape[-2])
    keeps = torch.ones(shape, dtype=torch.bool, device=key.device)
    keeps = (keeps if mask is None else keeps & mask).transpose(-2, -1)  # (…, key, 1)
    seen = keeps.cumsum(2) if causal else keeps.sum(2, keepdim=True)
    floor = seen.to(value.dtype) * least

    def chunks(*tensors: Tensor) -> zip:
        return zip(*(x.split(chunk, dim=2) for x in tensors), strict=True)

    def key_and_value(key: Tensor, value: Tensor, keeps: Tensor) -> tuple[Tensor, Tensor]:
        """Features, 0 where masked; and a column of ones, whose weighted sum is the normaliser."""
        return feature_map(key).masked_fill(~keeps, 0.0), F.pad(value, (0, 1), value=1.0)

    def divided(sums: Tensor, floor: Tensor) -> Tensor:
        total = sums[..., -1:].maximum(floor)
        return sums[..., :-1] / torch.where(total == 0, 1.0, total)

    state, outputs = 0.0, []  # the state is Σ φ(k) (v, 1)ᵀ, (batch, heads, features, d_value + 1)
    if not causal:
        for k, v, keep in chunks(key, value, keeps):
            k, v = key_and_value(k, v, keep)
            state = state + k.transpose(-2, -1) @ v
        for (q,) in chunks(query):
            outputs.append(divided(feature_map(q) @ state, floor))
    else:
        for q, k, v, keep, least_total in chunks(query, key, value, keeps, floor):
            q, (k, v) = feature_map(q), key_and_value(k, v, keep)
            sums = (q @ k.transpose(-2, -1)).tril() @ v  # within the chunk
            if outputs:
                sums = sums + q @ state  # the chunks before
            state = state + k.transpose(-2, -1) @ v
            outputs.append(divided(sums, least_total))
    return torch.cat(outputs, dim=2)
