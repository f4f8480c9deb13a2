"""The residual connection around each sublayer of a transformer's layer, with layer norm.

A layer adds to each token what a sublayer computes: attention or the feed-forward layer. Post-norm,
the paper's order, normalises the sum: LayerNorm(x + Sublayer(x)). Pre-norm, as in GPT-2, normalises
what enters the sublayer: x + Sublayer(LayerNorm(x)). The sum itself then passes from layer to layer
unchanged, and training can do without a warm-up of the learning rate (Xiong et al. 2020).
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn


class ResidualLayer(nn.Module):
    """What `EncoderLayer` and `DecoderLayer` share: the residual connection."""

    norm_first: bool
    dropout: nn.Dropout

    def residual(
        self,
        x: Float[Tensor, "batch seq d_model"],
        sublayer: Callable[[Tensor], tuple[Tensor, Tensor | None]],
        norm: nn.Module,
    ) -> tuple[Float[Tensor, "batch seq d_model"], Tensor | None]:
        """LayerNorm(x + Sublayer(x)), with norm_first x + Sublayer(LayerNorm(x)); and the weights.

        `sublayer` returns its output and its attention weights, or None where it has none.
        """
        if self.norm_first:
            output, weights = sublayer(norm(x))
            return x + self.dropout(output), weights
        output, weights = sublayer(x)
        return norm(x + self.dropout(output)), weights
