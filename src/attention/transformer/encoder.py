"""The transformer's encoder: a stack of layers, each of self-attention and feed-forward.

A layer has two sublayers. Self-attention mixes the tokens; the feed-forward layer works on each
token alone. A residual connection with layer norm surrounds each of them. A layer costs O(seq² ·
d_model) for the attention and O(seq · d_model · (d_model + d_ff)) for the matrices.

The encoder is a stack of n_layers such layers, six in the paper. Each layer takes the output of the
previous one, which has the same shape. In a pre-norm stack nothing normalises the last sum, so the
stack ends with a layer norm of its own. A post-norm stack needs none.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    require_dtype_of,
    require_function,
    require_size,
    require_vectors,
)
from attention.cached.key_value_cache import KeyValueCache
from attention.cached.latent import LatentCache
from attention.cached.rolling_cache import RollingCache
from attention.multihead import MultiHeadAttention
from attention.transformer.feed_forward import FeedForward
from attention.transformer.residual import ResidualLayer

Cache = KeyValueCache | RollingCache | LatentCache


class EncoderLayer(ResidualLayer):
    """Self-attention and feed-forward, each inside a residual connection with a norm.

    Called with causal=True, it is the layer of a decoder-only transformer.

    Args:
        d_model, n_heads, n_kv_heads, d_key, attend: as in `MultiHeadAttention`.
        d_ff, activation, gated: as in `FeedForward`.
        dropout: the probability for attention weights, unless attend is given, for the feed-forward
            layer's hidden numbers and for the output of either sublayer, in training only.
        norm_first: False normalises each residual sum (post-norm, the paper's order), True
            normalises what enters each sublayer (pre-norm).
        norm: makes a norm of d_model, such as torch.nn.RMSNorm.
        bias: as in `MultiHeadAttention`; the feed-forward layer adds biases only with True.

    Source:
        Vaswani et al. 2017, §3.1 and §5.4; Xiong et al. 2020, figure 1, for pre-norm.

    Example:
        >>> import torch
        >>> from attention import EncoderLayer
        >>> layer = EncoderLayer(d_model=8, n_heads=2, d_ff=32)
        >>> output, weights = layer(torch.randn(3, 6, 8))
        >>> output.shape, weights.shape
        (torch.Size([3, 6, 8]), torch.Size([3, 2, 6, 6]))
        >>> output.mean(-1).abs().max().item() < 1e-6  # post-norm: each token's mean is 0
        True
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: Callable[[Tensor], Tensor] = F.relu,
        gated: bool = False,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        bias: bool | str = True,
        n_kv_heads: int | None = None,
        d_key: int | None = None,
        attend: nn.Module | None = None,
    ) -> None:
        super().__init__()
        require_function("norm", norm, "of d_model that makes a norm, such as torch.nn.RMSNorm")
        self.d_model, self.norm_first = d_model, norm_first
        self.self_attention = MultiHeadAttention(
            d_model,
            n_heads,
            n_kv_heads=n_kv_heads,
            d_key=d_key,
            dropout=dropout if attend is None else 0.0,
            bias=bias,
            attend=attend,
        )
        self.self_attention_norm = norm(d_model)
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=dropout, gated=gated, bias=bias is True
        )
        self.feed_forward_norm = norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: Cache | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch seq d_model"], Float[Tensor, "batch heads seq _"] | None]:
        """Pass the tokens through both sublayers.

        Args:
            x: (batch, seq, d_model).
            mask: as in `MultiHeadAttention.forward`.
            causal: as in `MultiHeadAttention.forward`.
            cache: this layer's cache, as in `MultiHeadAttention.forward`.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, seq, d_model) and weights (batch, heads, seq, key).

        Raises:
            ValueError, TypeError: as `MultiHeadAttention.forward` does.
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        require_dtype_of(self, x=x)
        options: dict[str, Any] = {"causal": causal, "need_weights": need_weights}
        if cache is not None:  # a layer that keeps nothing has no such argument
            options["cache"] = cache
        attend = partial(self.self_attention, mask=mask, **options)
        x, weights = self.residual(x, attend, self.self_attention_norm)
        x, _ = self.residual(x, lambda x: (self.feed_forward(x), None), self.feed_forward_norm)
        return x, weights

    @classmethod
    def from_torch(cls, layer: nn.TransformerEncoderLayer) -> "EncoderLayer":
        """Copy one of torch's layers: weights, dtype, device, activation, dropout and norms."""
        if not isinstance(layer, nn.TransformerEncoderLayer):
            kind = type(layer).__name__
            raise TypeError(f"layer must be a torch.nn.TransformerEncoderLayer, got {kind}")
        attention, d_ff = layer.self_attn, layer.linear1.out_features
        ours = cls(attention.embed_dim, attention.num_heads, d_ff, norm_first=layer.norm_first)
        ours.self_attention = MultiHeadAttention.from_torch(attention)
        ours.self_attention_norm = copy.deepcopy(layer.norm1)
        ours.feed_forward = FeedForward.from_torch(layer)
        ours.feed_forward_norm = copy.deepcopy(layer.norm2)
        ours.dropout = copy.deepcopy(layer.dropout1)
        return ours.train(layer.training)


class Encoder(nn.Module):
    """n_layers encoder layers, one after the other.

    Modules by name: `layers`, and `norm`, a layer norm with norm_first=True and nn.Identity
    otherwise.

    Args:
        d_model, n_heads, d_ff, dropout, norm_first, activation: as in `EncoderLayer`.
        n_layers: how many layers.

    Source:
        Vaswani et al. 2017, §3.1; Xiong et al. 2020, table 1, for the last norm of pre-norm.

    Example:
        >>> import torch
        >>> from attention import Encoder, padding_mask
        >>> encoder, ids = Encoder(d_model=8, n_heads=2, d_ff=32), torch.tensor([[5, 2, 7, 0]])
        >>> output, weights = encoder(torch.randn(1, 4, 8), padding_mask(ids, pad_id=0))
        >>> output.shape, len(weights), weights[5].shape
        (torch.Size([1, 4, 8]), 6, torch.Size([1, 2, 4, 4]))
        >>> weights[5][..., 3].any().item()  # no query attends to the padding
        False
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        n_layers: int = 6,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        require_size("n_layers", n_layers)
        options = {"dropout": dropout, "norm_first": norm_first, "activation": activation}
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads, d_ff, **options) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch seq d_model"], list[Float[Tensor, "batch heads seq seq"]] | None
    ]:
        """Pass the tokens through every layer.

        Args:
            x: (batch, seq, d_model).
            mask: as in `MultiHeadAttention.forward`; every layer gets it.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, seq, d_model), and weights (batch, heads, seq, seq) for each layer.

        Raises:
            ValueError, TypeError: as `MultiHeadAttention.forward` does.
        """
        weights = []
        for layer in self.layers:
            x, layer_weights = layer(x, mask, need_weights=need_weights)
            weights.append(layer_weights)
        return self.norm(x), weights if need_weights else None

    @classmethod
    def from_torch(cls, encoder: nn.TransformerEncoder) -> "Encoder":
        """Copy torch's encoder: layers by `EncoderLayer.from_torch`, and the last norm if any."""
        if not isinstance(encoder, nn.TransformerEncoder):
            kind = type(encoder).__name__
            raise TypeError(f"encoder must be a torch.nn.TransformerEncoder, got {kind}")
        layers = [EncoderLayer.from_torch(layer) for layer in encoder.layers]
        ours = cls(layers[0].d_model, n_heads=1, d_ff=1, n_layers=1)  # each part is replaced
        ours.layers = nn.ModuleList(layers)
        ours.norm = nn.Identity() if encoder.norm is None else copy.deepcopy(encoder.norm)
        return ours.train(encoder.training)
