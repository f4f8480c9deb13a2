"""From token ids to vectors that know their position (chapter 1)."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from attention.arguments import require_dropout, require_size, require_token_ids, require_vectors


class TokenEmbedding(nn.Module):
    """One learned vector per token, multiplied by √d_model unless scaled=False.

    The table is drawn from N(0, 1/d_model), so that the output has variance 1. That is about the
    size of the positional encoding that is added next. The row of `pad_id` is zero and stays zero,
    since looking it up gives it no gradient. A layer that shares the table, such as a tied head,
    does give it a gradient, and there the row moves.

    Parameter by name: `table.weight` (vocab_size, d_model).

    Args:
        vocab_size: how many tokens there are.
        d_model: the width of a token's vector.
        pad_id: the id of the padding; None if there is none.
        scaled: whether the vectors are multiplied by √d_model.

    Raises:
        ValueError: pad_id is not in the table.

    Source:
        Vaswani et al. 2017, §3.4.

    Example:
        >>> import torch
        >>> from attention import TokenEmbedding
        >>> embedding = TokenEmbedding(vocab_size=10, d_model=4)
        >>> x = embedding(torch.tensor([[3, 7, 0]]))
        >>> x.shape, x[0, 2].tolist()
        (torch.Size([1, 3, 4]), [0.0, 0.0, 0.0, 0.0])
    """

    def __init__(
        self, vocab_size: int, d_model: int, *, pad_id: int | None = 0, scaled: bool = True
    ) -> None:
        super().__init__()
        require_size("vocab_size", vocab_size)
        require_size("d_model", d_model)
        if pad_id is not None:
            require_size("pad_id", pad_id, least=0)
            if pad_id >= vocab_size:
                raise ValueError(f"pad_id={pad_id} must be less than vocab_size={vocab_size}")
        self.d_model, self.scaled = d_model, scaled
        self.table = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        with torch.no_grad():
            self.table.weight.normal_(std=1 / math.sqrt(d_model))
            if pad_id is not None:
                self.table.weight[pad_id] = 0

    def forward(self, token_ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"]:
        """Look up the vector of every token.

        Args:
            token_ids: (batch, seq).

        Raises:
            IndexError: an id is outside the table (on a CPU; an accelerator reports it later).
        """
        require_token_ids(token_ids)
        try:
            x = self.table(token_ids)
        except IndexError:
            low, high = token_ids.aminmax()
            raise IndexError(
                f"token_ids run from {low} to {high}, but the table has vocab_size="
                f"{self.table.num_embeddings} rows: were they encoded with another vocabulary?"
            ) from None
        return x * math.sqrt(self.d_model) if self.scaled else x


class SinusoidalPositionalEncoding(nn.Module):
    """Add to each vector sines and cosines of its position.

    PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model)). An
    odd d_model ends with a sine that has no cosine. Dropout is applied to the sum.

    `table` (max_length, d_model) holds the rows. They are computed, not learned, and the state_dict
    leaves them out. A module made on the meta device computes them again when `to_empty` moves it;
    after load_state_dict(…, assign=True), call this module's `to_empty`.

    Args:
        d_model: the width of a token's vector.
        max_length: the greatest number of positions.
        dropout: the probability that a number of the sum is dropped, in training only.

    Source:
        Vaswani et al. 2017, §3.5.

    Example:
        >>> import torch
        >>> from attention import SinusoidalPositionalEncoding
        >>> SinusoidalPositionalEncoding(d_model=4)(torch.zeros(1, 3, 4))
        tensor([[[ 0.0000,  1.0000,  0.0000,  1.0000],
                 [ 0.8415,  0.5403,  0.0100,  0.9999],
                 [ 0.9093, -0.4161,  0.0200,  0.9998]]])
    """

    def __init__(self, d_model: int, max_length: int = 5000, *, dropout: float = 0.0) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("max_length", max_length)
        require_dropout(dropout)
        self.d_model, self.max_length = d_model, max_length
        table = sines_and_cosines(max_length, d_model).to(torch.get_default_dtype())
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        """Move the module, as torch does; when it leaves the meta device, compute the rows again.

        Module.to_empty leaves them uninitialised, and no state_dict holds values to fill them with.
        """
        was_meta = self.table.is_meta
        super()._apply(fn, recurse)
        if was_meta and not self.table.is_meta:
            table = sines_and_cosines(self.max_length, self.d_model, self.table.device)
            self.table = table.to(self.table.dtype)
        return self

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], first: int = 0
    ) -> Float[Tensor, "batch seq d_model"]:
        """Add rows of PE to every sequence; the dtype stays.

        Args:
            x: (batch, seq, d_model).
            first: the position of the first vector, where a cache holds those before it.

        Raises:
            ValueError: the sequence is longer than max_length.
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        require_size("first", first, least=0)
        seq = first + x.shape[1]
        if seq > self.max_length:
            raise ValueError(
                f"x has {seq} positions, more than max_length={self.max_length}; shorten it, or "
                f"build SinusoidalPositionalEncoding({self.d_model}, max_length={seq})"
            )
        return self.dropout(x + self.table[first:seq].to(x.dtype))

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, max_length={self.max_length}"


def sines_and_cosines(
    max_length: int, d_model: int, device: torch.device | None = None
) -> Float64[Tensor, "{max_length} {d_model}"]:
    """PE of every position, in float64: near 5000 an angle in float32 is wrong by 2e-4 radians."""
    position = torch.arange(max_length, dtype=torch.float64, device=device)[:, None]
    column = torch.arange(0, d_model, 2, dtype=torch.float64, device=device)
    angle = position / 10000 ** (column / d_model)  # (max_length, ⌈d_model/2⌉)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[:, :d_model]
