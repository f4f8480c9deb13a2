"""Performer: softmax attention estimated with positive random features, at a cost that grows as n.

The weight exp(q·k / √d_key) of scaled dot-product attention is the mean, over normal vectors ω, of
exp(ω·x - ‖x‖²/2) · exp(ω·y - ‖y‖²/2), where x and y are q and k over the fourth root of d_key. With
n_features drawn vectors that mean becomes a dot product of features, an estimate that is right on
average, and `kernel_attention` sums features in time O(n). Every feature is positive, so that no
normaliser comes out below 0. The vectors are drawn orthogonal to one another, which makes the
estimate vary less; its error falls as 1/√n_features.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention.arguments import require_size, require_vectors
from attention.linear.feature_maps import kernel_attention, require_feature_map_inputs


def orthogonal_projection(
    n_features: int, d_key: int, *, generator: torch.Generator | None = None
) -> Float[Tensor, "{n_features} {d_key}"]:
    """Draw n_features normal vectors that are orthogonal in groups of d_key.

    Each row by itself is a standard normal vector: its direction is even, its length drawn apart.
    Draw once, and keep the rows as a buffer, since queries and keys must meet the same ones.

    Args:
        n_features: how many vectors.
        d_key: how long they are.
        generator: where the numbers come from; torch's default unless given.

    Returns:
        The vectors as rows, (n_features, d_key).

    Source:
        Choromanski et al. 2020, §2.4; Yu et al. 2016 for the construction.

    Example:
        >>> import torch
        >>> from attention import orthogonal_projection
        >>> projection = orthogonal_projection(4, 4)
        >>> products = projection @ projection.T
        >>> torch.allclose(products, products.diag().diag(), atol=1e-5)
        True
    """
    require_size("n_features", n_features)
    require_size("d_key", d_key)
    groups = math.ceil(n_features / d_key)
    rotations, upper = torch.linalg.qr(torch.randn(groups, d_key, d_key, generator=generator))
    # QR is unique up to signs. With a positive diagonal, every rotation is equally likely.
    rotations = rotations * upper.diagonal(dim1=-2, dim2=-1).sign()[:, None]
    lengths = torch.randn(n_features, d_key, generator=generator).norm(dim=-1, keepdim=True)
    return rotations.flatten(0, 1)[:n_features] * lengths


def positive_features(
    x: Float[Tensor, "*batch seq d_key"], projection: Float[Tensor, "features d_key"]
) -> Float[Tensor, "*batch seq features"]:
    """exp(ω·x - ‖x‖²/2) / √features for each row ω of the projection.

    On average over the projection, positive_features(x) · positive_features(y) is exp(x·y). The
    estimate's variance is exp(2·x·y) · (exp(‖x + y‖²) - 1) / features with independent rows: it
    takes many features where long vectors point the same way.

    Args:
        x: (..., seq, d_key).
        projection: (features, d_key).

    Returns:
        The features, (..., seq, features).

    Source:
        Choromanski et al. 2020, §2.3, lemmas 1 and 2.

    Example:
        >>> import torch
        >>> from attention import positive_features
        >>> positive_features(torch.zeros(1, 3), torch.randn(4, 3))
        tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
    """
    return _log_features(x, projection).exp() / math.sqrt(len(projection))


def _log_features(x: Tensor, projection: Tensor) -> Tensor:
    return x @ projection.to(x.dtype).T - x.square().sum(-1, keepdim=True) / 2


def performer_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    projection: Float[Tensor, "features d_key"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
) -> Float[Tensor, "batch heads query d_value"]:
    """Estimate softmax(query · keyᵀ / √d_key) · value through positive random features.

    Causal, in float32, a query gets 0 where all the keys that it sees are far longer than later
    ones: with d_key 64 a key of length 32 before keys of length 8 is safe, one of 64 is lost. Their
    features are 0 beside the largest, which is taken over all keys. In float64 they are not.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        projection: (features, d_key), as `orthogonal_projection` draws it; the same for all heads.
        mask: which keys are no padding, (batch, 1, 1, key) as `padding_mask` makes it. A query that
            may attend to nothing gets output 0.
        causal: whether query i attends to the keys up to i only; there are as many keys as queries.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError: for a mask that differs between queries. No weight of a single query and key is
            made, so that there is none to mask.

    Cost:
        O(n · features · (d_key + d_value)) time, O(n · features) memory.

    Source:
        Choromanski et al. 2020, §2.2 to §2.4 (FAVOR+).

    Example:
        >>> import torch
        >>> from attention import orthogonal_projection, performer_attention
        >>> x = torch.randn(1, 2, 50, 8, generator=torch.Generator().manual_seed(0)) / 2
        >>> exact = torch.softmax(x @ x.transpose(-2, -1) / 8**0.5, dim=-1) @ x
        >>> many = orthogonal_projection(4096, 8, generator=torch.Generator().manual_seed(1))
        >>> bool((performer_attention(x, x, x, many) - exact).abs().max() < 0.1)
        True
    """
    require_feature_map_inputs(query, key, value, mask, causal, "Performer")
    require_vectors("projection", projection, "features d_key", last=query.shape[-1])
    fourth_root = query.shape[-1] ** 0.25
    log_query = _log_features(query / fourth_root, projection)
    log_key = _log_features(key / fourth_root, projection)
    if mask is not None:
        log_key = log_key.masked_fill(~mask.transpose(-2, -1), torch.finfo(log_key.dtype).min)
    # Long vectors would leave nothing but zeros, or infinity. So each feature is divided by its
    # largest among the keys, which goes to the queries instead, and what all features of a query
    # then share falls out of the quotient: for every query, the largest product is 1.
    largest = log_key.detach().amax(-2, keepdim=True)  # (batch, heads, 1, features)
    log_query = log_query + largest
    query = (log_query - log_query.detach().amax(-1, keepdim=True)).exp_()
    key = (log_key - largest).exp_()
    return kernel_attention(query, key, value, mask, causal=causal)
