"""The transformer's decoder: a stack of decoder layers, six in the paper.

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

from attention.arguments import check_size
from attention.decoder_layer import DecoderLayer


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
        check_size("n_layers", n_layers)
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
