"""The transformer's encoder: a stack of encoder layers, six in the paper.

Every layer takes what the one before gives, in the same shape, so that tokens that one layer has
brought together meet others in the next. Nothing normalises the last sum of a pre-norm stack; it
gets a layer norm of its own at the end. A post-norm stack needs none.
"""

import copy
from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import check_size
from attention.encoder_layer import EncoderLayer


class Encoder(nn.Module):
    """n_layers encoder layers, one after the other.

    Modules by name: `layers`, and `norm`, which is a layer norm with norm_first=True and else does
    nothing.

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
        >>> weights[5][..., 3].any().item()  # nobody attends to the padding
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
        check_size("n_layers", n_layers)
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
        every_layers = []
        for layer in self.layers:
            x, weights = layer(x, mask, need_weights=need_weights)
            every_layers.append(weights)
        return self.norm(x), every_layers if need_weights else None

    @classmethod
    def from_torch(cls, encoder: nn.TransformerEncoder) -> "Encoder":
        """Copy torch's encoder, its layers by `EncoderLayer.from_torch`, its last norm if any."""
        if not isinstance(encoder, nn.TransformerEncoder):
            kind = type(encoder).__name__
            raise TypeError(f"encoder must be a torch.nn.TransformerEncoder, got {kind}")
        layers = [EncoderLayer.from_torch(layer) for layer in encoder.layers]
        ours = cls(layers[0].d_model, n_heads=1, d_ff=1, n_layers=1)  # each part is replaced
        ours.layers = nn.ModuleList(layers)
        ours.norm = nn.Identity() if encoder.norm is None else copy.deepcopy(encoder.norm)
        return ours.train(encoder.training)
