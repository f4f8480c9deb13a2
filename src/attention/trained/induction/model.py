"""Attention alone: one layer falls short of induction, but two can do it.

The model has an embedding and learned positions, one or two layers of causal multi-head attention,
each added to what enters it, and a linear read-out. There is no feed-forward layer, no
normalisation and no bias, so that a logit is a sum over paths through the heads, and the product of
two heads' matrices is what one hands to the other.
"""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float, Int64
from torch import Tensor, nn

from attention.arguments import require_size
from attention.multihead import MultiHeadAttention
from attention.positions.learned import LearnedPositions
from attention.trained.induction.data import LENGTH, VOCAB_SIZE

D_MODEL, N_HEADS = 32, 2


class AttentionOnly(nn.Module):
    """Layers of causal self-attention, each added to what enters it, and a read-out.

    Modules by name: `embedding`, an nn.Embedding; `positions`, learned; `layers`, of
    `MultiHeadAttention`; and `to_next`, an nn.Linear(d_model, vocab_size). Nothing has a bias.

    Args:
        n_layers: how many layers of attention.

    Source:
        Elhage et al. 2021, "Model Simplifications": without feed-forward layers, biases and layer
        norm. Their positions reach queries and keys alone; here they are added to the rows, so that
        the values hold them too.

    Example:
        >>> import torch
        >>> from attention.trained.induction import AttentionOnly, draw_sequences
        >>> sequences = draw_sequences(3, torch.Generator().manual_seed(0))
        >>> logits, weights = AttentionOnly(n_layers=2)(sequences.token_ids)
        >>> logits.shape, len(weights), weights[0].shape
        (torch.Size([3, 32, 32]), 2, torch.Size([3, 2, 32, 32]))
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        require_size("n_layers", n_layers)
        self.embedding = nn.Embedding(VOCAB_SIZE, D_MODEL)
        self.positions = LearnedPositions(D_MODEL, LENGTH)
        self.layers = nn.ModuleList(
            MultiHeadAttention(D_MODEL, N_HEADS, bias=False) for _ in range(n_layers)
        )
        self.to_next = nn.Linear(D_MODEL, VOCAB_SIZE, bias=False)

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """The layers whose heads `without_head` can switch off."""
        return list(self.layers)

    def forward(
        self, token_ids: Int64[Tensor, "batch seq"]
    ) -> tuple[Float[Tensor, "batch seq vocab_size"], list[Float[Tensor, "batch heads seq seq"]]]:
        """Predict the token that follows each.

        Args:
            token_ids: (batch, seq), at most `LENGTH` tokens.

        Returns:
            A logit for each token that may come next, (batch, seq, vocab_size), and the weights
            (batch, heads, seq, seq) of each layer.
        """
        x = self.positions(self.embedding(token_ids))
        weights = []
        for layer in self.layers:
            output, layer_weights = layer(x, causal=True)
            x = x + output
            weights.append(layer_weights)
        return self.to_next(x), weights


LAYERS = (1, 2)  # the numbers of layers of the stored models


def file_name(n_layers: int) -> str:
    return f"{n_layers}-layer"


MODELS: dict[str, Callable[[], AttentionOnly]] = {
    file_name(n_layers): partial(AttentionOnly, n_layers) for n_layers in LAYERS
}
