"""One layer of attention, and in it any mechanism of the book.

Besides that layer, whose output is added to what enters it, the model has only embedded keys and
values and a linear read-out. There is no bias, no normalisation, and no position except where a
mechanism's name says so. A key finds its pair by what it is, not by where it is.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attention.positions.learned import LearnedPositions
from attention.trained.recall.data import MOST, N_KEYS, N_VALUES


class RecallModel(nn.Module):
    """Embedded pairs and questions, one layer of attention, and a read-out.

    Modules by name: `key` and `value`, each an nn.Embedding, whose sum is a pair; `positions`,
    learned, or an nn.Identity; `attention`; and `to_value`, an nn.Linear(d_model, 16) without bias.

    Args:
        attention: a layer with a `d_model` that is called as `MultiHeadAttention` is.
        causal: whether the layer is asked to hide the future. Nothing would leak here, since
            questions hold no values; but a model that writes has no future to look at.
        positions: whether learned vectors, which say where a pair is, are added to the rows.

    Example:
        >>> from functools import partial
        >>> import torch
        >>> from attention import Mechanism, MultiHeadAttention, linear_attention
        >>> from attention.trained.recall import RecallModel, draw_pairs
        >>> model = RecallModel(MultiHeadAttention(32, 2))
        >>> model.attention.attend = Mechanism(partial(linear_attention, causal=True))
        >>> pairs = draw_pairs(3, 20, 5, torch.Generator().manual_seed(0))
        >>> model(pairs.keys, pairs.values, pairs.asked).shape
        torch.Size([3, 5, 16])
    """

    def __init__(
        self, attention: nn.Module, *, causal: bool = False, positions: bool = False
    ) -> None:
        super().__init__()
        d_model = attention.d_model
        self.key = nn.Embedding(N_KEYS, d_model)
        self.value = nn.Embedding(N_VALUES, d_model)
        self.positions = LearnedPositions(d_model, MOST) if positions else nn.Identity()
        self.attention, self.causal = attention, causal
        self.to_value = nn.Linear(d_model, N_VALUES, bias=False)

    def embed(
        self,
        keys: Int64[Tensor, "batch pairs"],
        values: Int64[Tensor, "batch pairs"],
        asked: Int64[Tensor, "batch questions"],
    ) -> Float[Tensor, "batch seq d_model"]:
        """The rows as attention sees them, (batch, pairs + questions, d_model)."""
        pairs = self.key(keys) + self.value(values)
        return self.positions(torch.cat((pairs, self.key(asked)), dim=1))

    def forward(
        self,
        keys: Int64[Tensor, "batch pairs"],
        values: Int64[Tensor, "batch pairs"],
        asked: Int64[Tensor, "batch questions"],
    ) -> Float[Tensor, "batch questions n_values"]:
        """Answer each question.

        Args:
            keys: (batch, pairs).
            values: (batch, pairs).
            asked: (batch, questions).

        Returns:
            A logit for each value, (batch, questions, 16).
        """
        x = self.embed(keys, values, asked)
        attended, _ = self.attention(x, causal=self.causal)
        return self.to_value((x + attended)[:, -asked.shape[1] :])
