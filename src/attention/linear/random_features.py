"""Random Feature Attention: attention of unit vectors, estimated with sines and cosines.

Queries and keys are divided by their lengths. Then exp(scale · q·k), the weight of scaled
dot-product attention with another scale, equals the Gaussian exp(-‖x - y‖²/2) of x = √scale q and y
= √scale k, up to one constant factor. A Gaussian is the mean of cos(ω·(x - y)) over normal vectors
ω. With drawn vectors the mean of cosines becomes a dot product of features, which
`attention.linear.feature_maps` sums in time O(n).

These features can be negative, and their sum may come near 0 or fall below it. So the normaliser is
never taken below the least value that the exact one can have. The paper's gate, which forgets
earlier tokens, is left out.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import require_finite, require_vectors
from attention.linear.feature_maps import attend_through_features, require_feature_map_inputs


def fourier_features(
    x: Float[Tensor, "*batch seq d_key"], projection: Float[Tensor, "features d_key"]
) -> Float[Tensor, "*batch seq 2*features"]:
    """(sin(ω·x), cos(ω·x)) / √features for each row ω of the projection.

    On average over normal rows, fourier_features(x) · fourier_features(y) is exp(-‖x - y‖²/2).

    Args:
        x: (..., seq, d_key).
        projection: (features, d_key).

    Returns:
        The features, (..., seq, 2·features).

    Source:
        Rahimi and Recht 2007; Peng et al. 2021, §2.2, theorem 1.

    Example:
        >>> import torch
        >>> from attention import fourier_features
        >>> fourier_features(torch.zeros(1, 3), torch.randn(4, 3))
        tensor([[0.0000, 0.0000, 0.0000, 0.0000, 0.5000, 0.5000, 0.5000, 0.5000]])
    """
    require_vectors("x", x, "... seq d_key")
    require_vectors("projection", projection, "features d_key", last=x.shape[-1])
    return sine_features(x, projection)


def sine_features(x: Tensor, projection: Tensor) -> Tensor:
    """`fourier_features` without its argument checks."""
    angles = x @ projection.to(x.dtype).T
    return torch.cat([angles.sin(), angles.cos()], dim=-1) / math.sqrt(len(projection))


def random_feature_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    projection: Float[Tensor, "features d_key"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    scale: float = 1.0,
) -> Float[Tensor, "batch heads query d_value"]:
    """Estimate softmax(scale · query · keyᵀ) · value, of queries and keys divided by their lengths.

    Two things are simpler than in the paper. First, all heads share one projection, which stays the
    same: the authors' code gives every head its own and, in training, draws another one at every
    step. Second, `scale` is one number: the paper learns a vector σ for each head and multiplies
    the rows by it (§3.3, equation 8). A caller can do both: call this function for each head, and
    multiply the rows by σ.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        projection: (features, d_key), standard normal rows, the same for all heads. Draw it once,
            with torch.randn or with `orthogonal_projection`, and keep it as a buffer.
        mask: which keys are not padding, (batch, 1, 1, key) as `padding_mask` makes it. A query
            that may attend to nothing gets output 0.
        causal: whether query i attends to the keys up to i only; there are as many keys as queries.
        scale: what the cosine of query and key is multiplied by, the paper's 1/σ². The larger it
            is, the sharper the weights are, and the more features they need.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError: for a scale that is not positive, and for a mask that differs between queries:
            no weight of a single query and key is made, so there is none to mask.

    Cost:
        O(n · features · (d_key + d_value)) time, O(features · d_value) memory besides input and
        output; causal and with gradients, see `kernel_attention`.

    Source:
        Peng et al. 2021, §3.1; what is left out, §3.2 and §3.3.

    Example:
        >>> import torch
        >>> from attention import random_feature_attention
        >>> x = torch.randn(1, 2, 50, 8, generator=torch.Generator().manual_seed(0))
        >>> unit = torch.nn.functional.normalize(x, dim=-1)
        >>> exact = torch.softmax(unit @ unit.transpose(-2, -1), dim=-1) @ x
        >>> many = torch.randn(8192, 8, generator=torch.Generator().manual_seed(1))
        >>> bool((random_feature_attention(x, x, x, many) - exact).abs().mean() < 0.02)
        True
    """
    require_feature_map_inputs(query, key, value, mask, causal, "Random Feature Attention")
    require_vectors("projection", projection, "features d_key", last=query.shape[-1])
    require_finite("scale", scale)
    if scale <= 0.0:
        raise ValueError(f"scale must be positive, got {scale}; 1.0 is the cosine itself")

    def features(x: Tensor) -> Tensor:
        return sine_features(F.normalize(x, dim=-1) * math.sqrt(scale), projection)

    # Vectors of length √scale are at most 2·√scale apart, so no exact weight is less than this.
    least = math.exp(-2.0 * scale)
    return attend_through_features(
        query, key, value, mask, feature_map=features, causal=causal, least=least
    )
