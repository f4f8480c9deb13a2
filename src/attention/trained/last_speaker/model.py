"""Embedded words, one layer of causal attention, a read-out: five ways to tell it the order.

The model is the book's, with causal attention and a linear read-out of the question mark's row.
What differs is where order comes from (`SCHEMES`): from nothing but the causal mask, from sines and
cosines or learned vectors added to the words, from rotary queries and keys, or from a bias linear
in distance.
"""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float, Int64
from torch import Tensor, nn

from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.multihead import MultiHeadAttention
from attention.positions.learned import LearnedPositions
from attention.positions.linear_bias import LinearBias
from attention.positions.rotary import Rotary
from attention.trained.last_speaker.data import LENGTH, NAMES, WORDS

SCHEMES = ("causal mask alone", "sinusoidal", "learned", "rotary", "linear bias")
D_MODEL, N_HEADS = 32, 4


class LastSpeaker(nn.Module):
    """Embedded words, one layer of causal attention, and a read-out: who spoke last?

    Modules by name: `embedding`; `positions`, where the scheme adds vectors to the words, and an
    nn.Identity where it does not; `attention`, with the scheme's transform or bias;
    and `to_name`, an nn.Linear(d_model, 8). Nothing has a bias.

    Args:
        scheme: one of `SCHEMES`.

    Raises:
        ValueError: there is no such scheme.

    Example:
        >>> import torch
        >>> from attention.trained.last_speaker import LastSpeaker, draw_talks
        >>> talks = draw_talks(3, 64, torch.Generator().manual_seed(0))
        >>> logits, weights = LastSpeaker("rotary")(talks.token_ids)
        >>> logits.shape, weights.shape
        (torch.Size([3, 64, 8]), torch.Size([3, 4, 64, 64]))
    """

    def __init__(self, scheme: str) -> None:
        super().__init__()
        require_scheme(scheme)
        self.scheme = scheme
        self.embedding = TokenEmbedding(len(WORDS), D_MODEL, pad_id=None)
        self.positions: nn.Module = nn.Identity()
        self.attention = MultiHeadAttention(D_MODEL, N_HEADS, bias=False)
        self.to_name = nn.Linear(D_MODEL, len(NAMES), bias=False)
        if scheme == "sinusoidal":
            self.positions = SinusoidalPositionalEncoding(D_MODEL)
        elif scheme == "learned":
            self.positions = LearnedPositions(D_MODEL, LENGTH)
        elif scheme == "rotary":
            self.attention.attend.transform = Rotary(self.attention.d_key)
        elif scheme == "linear bias":
            self.attention.attend.bias = LinearBias(N_HEADS)

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """The layers whose heads `without_head` can switch off."""
        return [self.attention]

    def embed(self, token_ids: Int64[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"]:
        """The words as attention sees them, with what the scheme adds to them."""
        return self.positions(self.embedding(token_ids))

    def forward(
        self, token_ids: Int64[Tensor, "batch seq"], *, last: bool = False
    ) -> tuple[Float[Tensor, "batch query names"], Float[Tensor, "batch heads query seq"]]:
        """Say at every position, or at the last one alone, who spoke last.

        Args:
            token_ids: (batch, seq).
            last: asks at the last position only, which spares the other queries of a long talk.

        Returns:
            A logit for each name, (batch, query, names), and the weights (batch, heads, query,
            seq); with `last`, of one query.

        Raises:
            ValueError: the scheme is learned, and the talk is longer than `LENGTH`.
        """
        x = self.embed(token_ids)
        output, weights = self.attention(x[:, -1:] if last else x, x, causal=True)
        return self.to_name(output), weights


def require_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        can_be = ", ".join(map(repr, SCHEMES[:-1])) + f" or {SCHEMES[-1]!r}"
        raise ValueError(f"there is no scheme {scheme!r}; it can be {can_be}")


def file_name(scheme: str) -> str:
    return scheme.replace(" ", "-")


MODELS: dict[str, Callable[[], LastSpeaker]] = {
    file_name(scheme): partial(LastSpeaker, scheme) for scheme in SCHEMES
}
