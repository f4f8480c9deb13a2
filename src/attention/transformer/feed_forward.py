"""The position-wise feed-forward layer: the sublayer that a transformer layer has beside attention.

Attention moves information between tokens. This layer works on each token alone, with the same
weights at every position: a linear layer to d_ff columns, an activation, and a linear layer back.
With the usual d_ff = 4 · d_model it holds two thirds of an encoder layer's parameters.

With a gate, the output of a second linear layer to d_ff columns is multiplied by the activated
output of the first. Language models since PaLM and Llama have such a gate, with SiLU (SwiGLU) or
GELU (GEGLU) as the activation and with a d_ff of two thirds as many columns, so that three matrices
hold the same number of parameters as two.
"""

import copy
from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    require_dropout,
    require_dtype_of,
    require_function,
    require_size,
    require_vectors,
)


class FeedForward(nn.Module):
    """w_2(activation(w_1(x))), with a gate w_2(activation(w_1(x)) · w_3(x)), for each token alone.

    Parameters by name: `w_1.weight` (d_ff, d_model), `w_1.bias` (d_ff), `w_2.weight` (d_model,
    d_ff), `w_2.bias` (d_model); with a gate `w_3.weight` and `w_3.bias`, shaped like those of w_1.

    Args:
        d_model: the width of every token's vector, in and out.
        d_ff: the width of the hidden layer.
        activation: a function of a tensor, such as F.relu (the paper's), F.gelu or F.silu.
        dropout: the probability that a hidden number is dropped, in training only.
        gated: whether w_3 is multiplied in: SwiGLU with F.silu, GEGLU with F.gelu.
        bias: whether the linear layers add a bias.

    Cost:
        O(seq · d_model · d_ff) operations.

    Source:
        Vaswani et al. 2017, §3.3, equation 2; the dropout of hidden numbers is torch's. Shazeer
        2020, equations 5 and 6, for the gate.

    Example:
        >>> import torch
        >>> from attention import FeedForward
        >>> feed_forward, x = FeedForward(d_model=8, d_ff=32), torch.randn(2, 5, 8)
        >>> whole = feed_forward(x)
        >>> whole.shape, torch.allclose(feed_forward(x[:, 3:4]), whole[:, 3:4], atol=1e-6)
        (torch.Size([2, 5, 8]), True)
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Callable[[Tensor], Tensor] = F.relu,
        dropout: float = 0.0,
        gated: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("d_ff", d_ff)
        require_dropout(dropout)
        what = "of a tensor, such as torch.nn.functional.relu or torch.nn.functional.gelu"
        require_function("activation", activation, what)
        self.d_model = d_model
        self.w_1 = nn.Linear(d_model, d_ff, bias=bias)
        self.w_2 = nn.Linear(d_ff, d_model, bias=bias)
        self.w_3 = nn.Linear(d_model, d_ff, bias=bias) if gated else None
        self.activation, self.dropout = activation, nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch seq d_model"]) -> Float[Tensor, "batch seq d_model"]:
        """Compute the output for each token by itself.

        Args:
            x: (batch, seq, d_model).

        Returns:
            The output, (batch, seq, d_model).
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        require_dtype_of(self, x=x)
        hidden = self.activation(self.w_1(x))  # (batch, seq, d_ff)
        if self.w_3 is not None:
            hidden = hidden * self.w_3(x)
        return self.w_2(self.dropout(hidden))

    @classmethod
    def from_torch(
        cls, layer: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
    ) -> "FeedForward":
        """Copy the feed-forward part of one of torch's layers: weights, activation and dropout."""
        if not isinstance(layer, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            raise TypeError(
                "layer must be a torch.nn.TransformerEncoderLayer or TransformerDecoderLayer, got "
                f"{type(layer).__name__}"
            )
        d_ff, d_model = layer.linear1.weight.shape
        activation = copy.deepcopy(layer.activation)  # it may have parameters, as nn.PReLU has
        ours = cls(d_model, d_ff, activation=activation, dropout=layer.dropout.p)
        ours.w_1, ours.w_2 = copy.deepcopy(layer.linear1), copy.deepcopy(layer.linear2)
        return ours.train(layer.training)
