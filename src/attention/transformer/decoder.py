"""The transformer's decoder: a stack of layers of self-attention, cross-attention, feed-forward.

A layer has three sublayers, each inside a residual connection with layer norm. Self-attention is
causal: a token attends to the tokens up to itself. Cross-attention reads the source: its queries
come from the decoder, its keys and values from the encoder's output, the "memory". The feed-forward
layer works on each token alone. A layer costs as much as the encoder's. Cross-attention adds
O(query · key · d_model), and its matrices add O((query + key) · d_model²).

The decoder is a stack of n_layers such layers, six in the paper, over the same memory. Because
every layer is causal, a token's output never depends on a later token, and in training one pass
teaches all positions their next token. As in the encoder, a pre-norm stack ends with a layer norm.
"""

import copy
from collections.abc import Callable
from functools import partial

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_dtype_of, require_mask, require_size, require_vectors
from attention.multihead import MultiHeadAttention
from attention.transformer.feed_forward import FeedForward
from attention.transformer.residual import ResidualLayer


class DecoderLayer(ResidualLayer):
    """Causal self-attention, cross-attention to the encoder's output, and feed-forward.

    The encoder's output must be d_model wide too.

    Args:
        d_model, n_heads, d_ff, dropout, norm_first, activation: as in `EncoderLayer`.

    Source:
        Vaswani et al. 2017, §3.1 and §3.2.3; Xiong et al. 2020, figure 1, for pre-norm.

    Example:
        >>> import torch
        >>> from attention import DecoderLayer
        >>> layer = DecoderLayer(d_model=8, n_heads=2, d_ff=32)
        >>> x, memory = torch.randn(3, 4, 8), torch.randn(3, 6, 8)
        >>> output, self_weights, cross_weights = layer(x, memory)
        >>> output.shape, self_weights.shape, cross_weights.shape
        (torch.Size([3, 4, 8]), torch.Size([3, 2, 4, 4]), torch.Size([3, 2, 4, 6]))
        >>> self_weights[0, 0].triu(1).any().item()  # no token attends to a later one
        False
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
    ) -> None:
        super().__init__()
        self.d_model, self.norm_first = d_model, norm_first
        self.self_attention = MultiHeadAttention(d_model, n_heads, dropout=dropout)
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, n_heads, dropout=dropout)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation, dropout=dropout)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch query d_model"],
        Float[Tensor, "batch heads query query"] | None,
        Float[Tensor, "batch heads query key"] | None,
    ]:
        """Pass the tokens through all three sublayers.

        Args:
            x: (batch, query, d_model).
            memory: (batch, key, d_model).
            mask: for self-attention, as in `MultiHeadAttention.forward`; usually the padding mask
                of x, or None. The causal mask is always added.
            memory_mask: for cross-attention, as in `MultiHeadAttention.forward`; usually the
                source's padding mask, or None.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, query, d_model), self_weights (batch, heads, query, query) and
            cross_weights (batch, heads, query, key).

        Raises:
            ValueError, TypeError: as `MultiHeadAttention.forward` does.
        """
        require_vectors("x", x, "batch query d_model", last=self.d_model)
        require_vectors("memory", memory, "batch key d_model", last=self.d_model)
        if memory.shape[0] != x.shape[0]:
            raise ValueError(
                "x and memory must have the same batch, a source for each target, "
                f"got x {tuple(x.shape)} and memory {tuple(memory.shape)}"
            )
        require_dtype_of(self, x=x, memory=memory)
        if memory_mask is not None:  # the attention inside would call it mask
            n_heads = self.cross_attention.n_heads
            scores = (x.shape[0], n_heads, x.shape[1], memory.shape[1])
            require_mask(memory_mask, scores, "memory_mask")

        attend = partial(self.self_attention, mask=mask, causal=True, need_weights=need_weights)
        x, self_weights = self.residual(x, attend, self.self_attention_norm)
        attend = partial(
            self.cross_attention, key=memory, mask=memory_mask, need_weights=need_weights
        )
        x, cross_weights = self.residual(x, attend, self.cross_attention_norm)
        x, _ = self.residual(x, lambda x: (self.feed_forward(x), None), self.feed_forward_norm)
        return x, self_weights, cross_weights

    @classmethod
    def from_torch(cls, layer: nn.TransformerDecoderLayer) -> "DecoderLayer":
        """Copy one of torch's layers, as `EncoderLayer.from_torch` does.

        The original is causal only with a causal tgt_mask; the copy always is.
        """
        if not isinstance(layer, nn.TransformerDecoderLayer):
            kind = type(layer).__name__
            raise TypeError(f"layer must be a torch.nn.TransformerDecoderLayer, got {kind}")
        attention, d_ff = layer.self_attn, layer.linear1.out_features
        ours = cls(attention.embed_dim, attention.num_heads, d_ff, norm_first=layer.norm_first)
        ours.self_attention = MultiHeadAttention.from_torch(attention)
        ours.self_attention_norm = copy.deepcopy(layer.norm1)
        ours.cross_attention = MultiHeadAttention.from_torch(layer.multihead_attn)
        ours.cross_attention_norm = copy.deepcopy(layer.norm2)
        ours.feed_forward = FeedForward.from_torch(layer)
        ours.feed_forward_norm = copy.deepcopy(layer.norm3)
        ours.dropout = copy.deepcopy(layer.dropout1)
        return ours.train(layer.training)


class Decoder(nn.Module):
    """n_layers decoder layers, one after the other, over the same memory.

    Modules by name: `layers`, and `norm`, a layer norm with norm_first=True and nn.Identity
    otherwise.

    Args:
        d_model, n_heads, d_ff, dropout, norm_first, activation: as in `DecoderLayer`.
        n_layers: how many layers.

    Source:
        Vaswani et al. 2017, §3.1; Xiong et al. 2020, table 1, for the last norm of pre-norm.

    Example:
        >>> import torch
        >>> from attention import Decoder
        >>> decoder, memory = Decoder(d_model=8, n_heads=2, d_ff=32), torch.randn(1, 6, 8)
        >>> x = torch.randn(1, 4, 8)
        >>> output, self_weights, cross_weights = decoder(x, memory)
        >>> output.shape, len(cross_weights), cross_weights[5].shape
        (torch.Size([1, 4, 8]), 6, torch.Size([1, 2, 4, 6]))
        >>> shorter, *_ = decoder(x[:, :3], memory)
        >>> torch.allclose(shorter, output[:, :3], atol=1e-5)  # the fourth token changed nothing
        True
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
            DecoderLayer(d_model, n_heads, d_ff, **options) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        memory: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch query d_model"],
        list[Float[Tensor, "batch heads query query"]] | None,
        list[Float[Tensor, "batch heads query key"]] | None,
    ]:
        """Pass the tokens through every layer.

        Args:
            x: (batch, query, d_model).
            memory: (batch, key, d_model).
            mask: as in `DecoderLayer.forward`; every layer gets it.
            memory_mask: as in `DecoderLayer.forward`; every layer gets it.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, query, d_model), and for each layer self_weights (batch, heads, query,
            query) and cross_weights (batch, heads, query, key).

        Raises:
            ValueError, TypeError: as `DecoderLayer.forward` does.
        """
        self_weights, cross_weights = [], []
        for layer in self.layers:
            x, layer_self, layer_cross = layer(
                x, memory, mask, memory_mask, need_weights=need_weights
            )
            self_weights.append(layer_self)
            cross_weights.append(layer_cross)
        if not need_weights:
            return self.norm(x), None, None
        return self.norm(x), self_weights, cross_weights

    @classmethod
    def from_torch(cls, decoder: nn.TransformerDecoder) -> "Decoder":
        """Copy torch's decoder: layers by `DecoderLayer.from_torch`, and the last norm if any."""
        if not isinstance(decoder, nn.TransformerDecoder):
            kind = type(decoder).__name__
            raise TypeError(f"decoder must be a torch.nn.TransformerDecoder, got {kind}")
        layers = [DecoderLayer.from_torch(layer) for layer in decoder.layers]
        ours = cls(layers[0].d_model, n_heads=1, d_ff=1, n_layers=1)  # each part is replaced
        ours.layers = nn.ModuleList(layers)
        ours.norm = nn.Identity() if decoder.norm is None else copy.deepcopy(decoder.norm)
        return ours.train(decoder.training)
