"""One layer of the transformer's decoder: causal self-attention, cross-attention, feed-forward.

Self-attention gathers from the tokens so far. Cross-attention gathers from the source: its queries
come from the decoder, its keys and values from the encoder's output, the "memory". The feed-forward
layer works on each token alone. All three stand in residual connections with layer norm, after the
sum or before the part, as in the encoder's layer.

The transformer's decoder: a stack of decoder layers, six in the paper.

Every layer looks at the same encoder output. Because self-attention is causal in each of them, a
token's output depends on the tokens up to it and never on a later one: in training, all positions
learn to say their next token in one pass. As in the encoder, a pre-norm stack ends with a layer
norm and a post-norm stack needs none.
"""

import copy
from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_mask, require_size, require_vectors
from attention.masks import causal_mask
from attention.multihead import MultiHeadAttention
from attention.transformer.feed_forward import FeedForward


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention to the encoder's output, and feed-forward.

    The encoder's output is as wide as the decoder.

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
        >>> self_weights[0, 0].triu(1).any().item()  # nobody attends to what comes later
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
        self.d_model, self.n_heads, self.norm_first = d_model, n_heads, norm_first
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
        """Pass the tokens through all three parts.

        Args:
            x: (batch, query, d_model).
            memory: (batch, key, d_model).
            mask: who may attend to whom among x, as in `MultiHeadAttention.forward`, besides the
                causal mask, which always holds; usually the padding mask of x, or None.
            memory_mask: who may attend to what in memory, as in `MultiHeadAttention.forward`;
                usually the source's padding mask, or None.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, query, d_model), self_weights (batch, heads, query, query) and
            cross_weights (batch, heads, query, key).

        Raises:
            ValueError, TypeError: as `MultiHeadAttention.forward` does.
        """
        require_vectors("x", x, "batch query d_model", last=self.d_model)
        require_vectors("memory", memory, "batch key d_model", last=self.d_model)
        batch, seq, _ = x.shape
        if memory.shape[0] != batch:
            raise ValueError(
                "x and memory must have the same batch, a source for each target, "
                f"got x {tuple(x.shape)} and memory {tuple(memory.shape)}"
            )
        past = causal_mask(seq, device=x.device)
        if mask is not None:
            require_mask(mask, (batch, self.n_heads, seq, seq))
            past = past & mask

        if self.norm_first:
            normed = self.self_attention_norm(x)
            found, self_weights = self.self_attention(normed, mask=past, need_weights=need_weights)
            x = x + self.dropout(found)
            normed = self.cross_attention_norm(x)
            found, cross_weights = self.cross_attention(
                normed, memory, mask=memory_mask, need_weights=need_weights
            )
            x = x + self.dropout(found)
            x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        else:
            found, self_weights = self.self_attention(x, mask=past, need_weights=need_weights)
            x = self.self_attention_norm(x + self.dropout(found))
            found, cross_weights = self.cross_attention(
                x, memory, mask=memory_mask, need_weights=need_weights
            )
            x = self.cross_attention_norm(x + self.dropout(found))
            x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return x, self_weights, cross_weights

    @classmethod
    def from_torch(cls, layer: nn.TransformerDecoderLayer) -> "DecoderLayer":
        """Copy one of torch's layers, as `EncoderLayer.from_torch` does.

        torch's layer is causal where it is given a causal tgt_mask; this one always is.
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

    Modules by name: `layers`, and `norm`, which is a layer norm with norm_first=True and else does
    nothing.

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
        every_self, every_cross = [], []
        for layer in self.layers:
            x, self_weights, cross_weights = layer(
                x, memory, mask, memory_mask, need_weights=need_weights
            )
            every_self.append(self_weights)
            every_cross.append(cross_weights)
        if not need_weights:
            return self.norm(x), None, None
        return self.norm(x), every_self, every_cross

    @classmethod
    def from_torch(cls, decoder: nn.TransformerDecoder) -> "Decoder":
        """Copy torch's decoder, its layers by `DecoderLayer.from_torch`, its last norm if any."""
        if not isinstance(decoder, nn.TransformerDecoder):
            kind = type(decoder).__name__
            raise TypeError(f"decoder must be a torch.nn.TransformerDecoder, got {kind}")
        layers = [DecoderLayer.from_torch(layer) for layer in decoder.layers]
        ours = cls(layers[0].d_model, n_heads=1, d_ff=1, n_layers=1)  # each part is replaced
        ours.layers = nn.ModuleList(layers)
        ours.norm = nn.Identity() if decoder.norm is None else copy.deepcopy(decoder.norm)
        return ours.train(decoder.training)
