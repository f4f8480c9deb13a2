"""Learned positions: one trained vector per position, added to the embedded words.

The vector of position 7 is whatever training makes of it, and says nothing about position 8. So
there is no vector for a position that no training sentence had, and a model that learned from 12
tokens cannot take 13.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention.arguments import (
    require_dropout,
    require_dtype_of,
    require_size,
    require_vectors,
)


class LearnedPositions(nn.Module):
    """Add to each vector the learned vector of its position. Dropout is applied to the sum.

    The table is drawn from N(0, 1), so that its vectors are as large as the embedded words that
    `TokenEmbedding` gives.

    Parameter by name: `table` (max_length, d_model).

    Args:
        d_model: the width of a token's vector.
        max_length: the number of positions that have a vector.
        dropout: the probability that a number of the sum is dropped, in training only.

    Source:
        Gehring et al. 2017, §3.1; Devlin et al. 2018 (BERT) and Radford et al. 2019 (GPT-2) use it.

    Example:
        >>> import torch
        >>> from attention import LearnedPositions
        >>> positions = LearnedPositions(d_model=4, max_length=10)
        >>> x = positions(torch.zeros(1, 3, 4))
        >>> torch.equal(x[0], positions.table[:3])
        True
    """

    def __init__(self, d_model: int, max_length: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("max_length", max_length)
        require_dropout(dropout)
        self.d_model, self.max_length = d_model, max_length
        self.table = nn.Parameter(torch.randn(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], first: int = 0
    ) -> Float[Tensor, "batch seq d_model"]:
        """Add rows of the table to every sequence; the dtype stays.

        Args:
            x: (batch, seq, d_model).
            first: the position of the first vector, where a cache holds those before it.

        Raises:
            ValueError: the sequence is longer than max_length.
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        require_dtype_of(self, x=x)
        require_size("first", first, least=0)
        seq = first + x.shape[1]
        if seq > self.max_length:
            raise ValueError(
                f"x has {seq} positions, more than max_length={self.max_length}, and no vector was "
                f"learned for the others; shorten x, or build and train "
                f"LearnedPositions({self.d_model}, max_length={seq})"
            )
        return self.dropout(x + self.table[first:seq].to(x.dtype))

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, max_length={self.max_length}"
