"""Performer: softmax attention estimated with positive random features, at a cost that grows as n.

The exponential exp(q·k / √d_key) of scaled dot-product attention is the mean, over normal vectors
ω, of exp(ω·x - ‖x‖²/2) · exp(ω·y - ‖y‖²/2), where x and y are q and k divided by the fourth root of
d_key. With n_features drawn vectors the mean becomes a dot product of features: an estimate that is
right on average, and that `attention.linear.feature_maps` sums in time O(n). The weights are
quotients of such estimates and biased. Every feature is positive, so no normaliser is below 0.

The drawn vectors are orthogonal to one another, which makes the estimate vary less. Its error falls
as 1/√n_features.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import require_size, require_vectors
from attention.heads import for_each_head
from attention.linear.feature_maps import (
    CHUNK,
    attend_through_features,
    require_feature_map_inputs,
    require_hideable,
)
from attention.masks import kept_keys
from attention.precision import summed_in_float32


def orthogonal_projection(
    n_features: int, d_key: int, *, generator: torch.Generator | None = None
) -> Float[Tensor, "{n_features} {d_key}"]:
    """Draw n_features normal vectors that are orthogonal in groups of d_key.

    Each row by itself is a standard normal vector: every direction is equally likely, and its
    length is drawn separately. The paper takes no more than d_key vectors, so one group is enough.

    Keep the rows as a buffer, since queries and keys must meet the same ones. In training the paper
    draws them again from time to time; `Performer` does both.

    Args:
        n_features: how many vectors.
        d_key: how long they are.
        generator: where the numbers come from; torch's default unless given.

    Returns:
        The vectors as rows, (n_features, d_key).

    Source:
        Choromanski et al. 2020, §2.4 and §4.2; Yu et al. 2016 for the construction.

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
    estimate's variance is exp(2·x·y) · (exp(‖x + y‖²) - 1) / features with independent rows, so
    many features are needed where long vectors point the same way.

    Args:
        x: (..., seq, d_key).
        projection: (features, d_key).

    Returns:
        The features, (..., seq, features).

    Source:
        Choromanski et al. 2020, §2.3, lemma 1, and §3, lemma 2.

    Example:
        >>> import torch
        >>> from attention import positive_features
        >>> positive_features(torch.zeros(1, 3), torch.randn(4, 3))
        tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
    """
    require_vectors("x", x, "... seq d_key")
    require_vectors("projection", projection, "features d_key", last=x.shape[-1])
    return log_features(x, projection).exp() / math.sqrt(len(projection))


def log_features(x: Tensor, projection: Tensor) -> Tensor:
    return (x @ projection.to(x.dtype).T).sub_(x.square().sum(-1, keepdim=True) / 2)


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

    Averaged over draws of the projection, the exponentials are right. The weights, each divided by
    an estimated sum, are not: with few features they are biased. Any one draw has an error, which
    more features make smaller and long vectors make larger. With 256 features, queries and keys
    from N(0, 1) and d_key 64, the error is about four times as large as the exact output itself
    (root mean square, 1,024 tokens). With vectors half as long the error is half as large as the
    output, and with a quarter of the length it is a twentieth: Performer is for short queries and
    keys.

    With causal=True, in float32, a query gets 0 where all the keys that it sees are far longer than
    later ones: with d_key 64 a key of length 32 before keys of length 8 is safe, but one of 64 is
    lost. The reason is that each feature is divided by its largest value over all keys. Beside that
    value the early keys' features round to 0, and no gradient flows there. This does not happen in
    float64. Inputs in float16 and bfloat16 are computed in float32.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        projection: (features, d_key), as `orthogonal_projection` draws it; the same for all heads.
        mask: which keys are not padding, (batch, 1, 1, key) as `padding_mask` makes it. A query
            that may attend to nothing gets output 0.
        causal: whether query i attends to the keys up to i only; there are as many keys as queries.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError: for a mask that differs between queries: no weight of a single query and key is
            made, so there is none to mask.

    Cost:
        O(n · features · (d_key + d_value)) time and O(features · d_value) memory besides input and
        output; causal and with gradients, see `kernel_attention`. The keys are multiplied by the
        projection twice: once to find the largest value of each feature, and once to make the
        features.

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
    return estimate_softmax(query, key, value, projection, mask, causal=causal)


@summed_in_float32
def estimate_softmax(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    projection: Float[Tensor, "features d_key"],
    mask: Bool[Tensor, "..."] | None,
    *,
    causal: bool,
) -> Float[Tensor, "batch heads query d_value"]:
    """`performer_attention` without its argument checks."""
    fourth_root = query.shape[-1] ** 0.25

    # All steps on features are in place, because features are by far the largest tensors here.
    def log_of_keys(k: Tensor, kept: Tensor) -> Tensor:
        return log_features(k / fourth_root, projection).masked_fill_(~kept, -math.inf)

    # Long vectors would leave nothing but zeros, or infinity. So each feature is divided by its
    # largest value among the keys, and the same feature of the queries is multiplied by that value,
    # which leaves the products unchanged.
    largest = key.new_full((), torch.finfo(key.dtype).min)
    with torch.no_grad():
        for k, kept in zip(key.split(CHUNK, 2), kept_keys(key, mask).split(CHUNK, 2), strict=True):
            largest = largest.maximum(log_of_keys(k, kept).amax(-2, keepdim=True))

    def key_map(k: Tensor, kept: Tensor) -> Tensor:
        return log_of_keys(k, kept).sub_(largest).exp_()

    def query_map(q: Tensor) -> Tensor:
        log = log_features(q / fourth_root, projection).add_(largest)
        # What all features of a query share cancels in the quotient: the largest becomes 1.
        return log.sub_(log.detach().amax(-1, keepdim=True)).exp_()

    # The square of 1 / least, which appears in the gradients, is still finite.
    least = math.sqrt(torch.finfo(query.dtype).tiny) if causal else 0.0
    return attend_through_features(
        *(query, key, value, mask),
        feature_map=query_map,
        key_map=key_map,
        causal=causal,
        least=least,
    )


class Performer(nn.Module):
    """What attends in `MultiHeadAttention` with n_features positive random features.

    The projection is a buffer, (n_features, d_key), saved with the weights and shared by all heads.

    In training the paper draws a new projection from time to time: with fixed features, its models
    stop improving earlier (§4.2 and figure 5). To draw a new one, call `redraw` every few hundred
    steps, between two steps.

    Args:
        d_key: the width of a head.
        n_features: how many random features estimate exp(q·k / √d_key). More features make the
            error smaller and the work larger.
        generator: where the projection comes from; torch's global generator unless given.

    Source:
        Choromanski et al. 2020, §2 and §4.2.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, Performer
        >>> module = MultiHeadAttention(8, 2, attend=Performer(d_key=4, n_features=16))
        >>> output, weights = module(torch.zeros(3, 50, 8), causal=True)
        >>> output.shape, weights
        (torch.Size([3, 50, 8]), None)
    """

    def __init__(
        self, d_key: int, *, n_features: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        projection = orthogonal_projection(n_features, d_key, generator=generator)
        self.register_buffer("projection", projection)

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        v: Float[Tensor, "batch kv_heads key d_value"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch heads query d_value"], None]:
        """Attend in every head, as `DotProduct.forward` does; the weights are None.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key), copied for each query head.
            v: (batch, kv_heads, key, d_value).
            mask: which keys are not padding, (batch, 1, 1, key), as for `performer_attention`.
            causal: as for `performer_attention`.
            need_weights: changes nothing: no weights are made.

        Raises:
            ValueError, TypeError: as `performer_attention` does.
        """
        k, v = for_each_head(k, q.shape[1]), for_each_head(v, q.shape[1])
        require_hideable(q, k, mask, causal, "Performer")
        require_vectors("projection", self.projection, "features d_key", last=q.shape[-1])
        return estimate_softmax(q, k, v, self.projection, mask, causal=causal), None

    @torch.no_grad()
    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw another projection; torch's global generator is used unless one is given."""
        self.projection.copy_(orthogonal_projection(*self.projection.shape, generator=generator))

    def extra_repr(self) -> str:
        return f"n_features={len(self.projection)}"
