"""Models that turn written dates into ISO dates; all of them read letters and write signs.

The recurrent ones differ in what their decoder gets from the source: the encoder's last states
alone, or a context made by attention, which is either additive or Luong's with one of his scores.
Those that are called narrow have an encoder of 6 numbers in each direction, so that the last states
are 12 numbers; only the score "dot" needs states as wide as the decoder's. Two models are
transformers of one encoder layer and one decoder layer, the first with four heads and the second
with one.
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attention.masks import padding_mask
from attention.multihead import MultiHeadAttention
from attention.recurrent.encoder_decoder import (
    BahdanauDecoder,
    BidirectionalEncoder,
    LuongDecoder,
    RecurrentDecoder,
)
from attention.recurrent.last_state import LastStateDecoder
from attention.trained.dates.data import END, LETTERS, SIGNS, START
from attention.transformer.encoder_decoder import EncoderDecoder

LONGEST = 64  # letters; the longest written date has 62
ANSWER = 11  # signs that are written: "1973-03-04" and <end>


class RecurrentDates(nn.Module):
    """A recurrent encoder and decoder that turn written dates into ISO dates.

    Parameters by name: those of ``encoder`` and ``decoder``.

    Args:
        decoder: makes the decoder from (vocab_size, d_embedding, key_dim, hidden_dim).
        d_embedding: the width of an embedded letter or sign.
        encoder_dim: the width of an encoder's state in each direction.
        hidden_dim: the width of a decoder's state.

    Source:
        Bahdanau, Cho and Bengio 2014; Luong, Pham and Manning 2015.

    Example:
        >>> from attention import LuongDecoder
        >>> from attention.trained.dates import RecurrentDates, encode, held_out_dates
        >>> model = RecurrentDates(LuongDecoder, d_embedding=8, encoder_dim=6, hidden_dim=5)
        >>> letters, signs = encode(held_out_dates()[:2])
        >>> logits, weights = model(letters, signs[:, :-1])
        >>> logits.shape, weights.shape
        (torch.Size([2, 11, 14]), torch.Size([2, 1, 11, 44]))
    """

    def __init__(
        self,
        decoder: Callable[[int, int, int, int], RecurrentDecoder],
        d_embedding: int,
        encoder_dim: int,
        hidden_dim: int,
    ) -> None:
        super().__init__()
        self.encoder = BidirectionalEncoder(len(LETTERS), d_embedding, encoder_dim)
        self.decoder = decoder(len(SIGNS), d_embedding, 2 * encoder_dim, hidden_dim)

    def forward(
        self, letters: Int64[Tensor, "batch key"], signs: Int64[Tensor, "batch target"]
    ) -> tuple[Float[Tensor, "batch target vocab"], Float[Tensor, "batch heads target key"]]:
        """Return the logits of the sign after each of `signs`, and the weights, of one head.

        Args:
            letters: (batch, key), padded.
            signs: (batch, target), <start> first.
        """
        mask = padding_mask(letters, LETTERS.pad_id)[:, 0]
        logits, weights = self.decoder(signs, self.encoder(letters), mask)
        return logits, weights[:, None]

    def write(self, letters: Int64[Tensor, "batch key"]) -> Int64[Tensor, "batch target"]:
        """Write the likeliest sign at every step, until <end>: `ANSWER` signs at most."""
        mask = padding_mask(letters, LETTERS.pad_id)[:, 0]
        encoded = self.encoder(letters)
        signs, _ = self.decoder.greedy(encoded, mask, start_id=START, end_id=END, max_length=ANSWER)
        return signs


class TransformerDates(nn.Module):
    """A transformer that turns written dates into ISO dates: `EncoderDecoder` with 1 + 1 layers.

    Parameters by name: those of ``transformer``.

    Args:
        d_model, n_heads, d_ff: as for `EncoderDecoder`.

    Source:
        Vaswani et al. 2017, figure 1; Xiong et al. 2020, figure 1, for the norm before a sublayer.

    Example:
        >>> from attention.trained.dates import TransformerDates, encode, held_out_dates
        >>> letters, signs = encode(held_out_dates()[:2])
        >>> logits, weights = TransformerDates(8, n_heads=2, d_ff=16)(letters, signs[:, :-1])
        >>> logits.shape, weights.shape
        (torch.Size([2, 11, 14]), torch.Size([2, 2, 11, 44]))
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__()
        self.transformer = EncoderDecoder(
            len(LETTERS), len(SIGNS), d_model, n_heads, d_ff,
            n_layers=1, norm_first=True, max_length=LONGEST,
        )  # fmt: skip

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """The layers whose heads `without_head` can switch off: the cross-attention."""
        return [layer.cross_attention for layer in self.transformer.decoder.layers]

    def forward(
        self, letters: Int64[Tensor, "batch key"], signs: Int64[Tensor, "batch target"]
    ) -> tuple[Float[Tensor, "batch target vocab"], Float[Tensor, "batch heads target key"]]:
        """Return the logits of the sign after each of `signs`, and the cross-attention weights.

        Args:
            letters: (batch, key), padded.
            signs: (batch, target), <start> first.
        """
        output = self.transformer(letters, signs)
        return output.logits, output.cross_weights[0]

    @torch.no_grad()
    def write(self, letters: Int64[Tensor, "batch key"]) -> Int64[Tensor, "batch target"]:
        """Write the likeliest sign at every step, `ANSWER` signs."""
        memory, _ = self.transformer.encode(letters, need_weights=False)
        signs = torch.full((len(letters), 1), START, device=letters.device)
        for _ in range(ANSWER):
            logits, *_ = self.transformer.decode(signs, memory, letters, need_weights=False)
            signs = torch.cat((signs, logits[:, -1:].argmax(-1)), dim=1)
        return signs[:, 1:]


# Among the wide recurrent models, and among the narrow ones, the model without attention has the
# most parameters.
MODELS: dict[str, Callable[[], RecurrentDates | TransformerDates]] = {
    "last-state": lambda: RecurrentDates(LastStateDecoder, 16, 28, 28),
    "last-state-longer": lambda: RecurrentDates(LastStateDecoder, 16, 28, 28),
    "additive": lambda: RecurrentDates(BahdanauDecoder, 16, 24, 24),
    "general": lambda: RecurrentDates(partial(LuongDecoder, score="general"), 16, 24, 24),
    "narrow-last-state": lambda: RecurrentDates(LastStateDecoder, 16, 6, 32),
    "narrow-last-state-longer": lambda: RecurrentDates(LastStateDecoder, 16, 6, 32),
    "narrow-last-state-longest": lambda: RecurrentDates(LastStateDecoder, 16, 6, 32),
    "narrow-additive": lambda: RecurrentDates(BahdanauDecoder, 16, 6, 24),
    "narrow-dot": lambda: RecurrentDates(partial(LuongDecoder, score="dot"), 16, 10, 20),
    "narrow-general": lambda: RecurrentDates(partial(LuongDecoder, score="general"), 16, 6, 24),
    "narrow-concat": lambda: RecurrentDates(partial(LuongDecoder, score="concat"), 16, 6, 24),
    "transformer": lambda: TransformerDates(48, 4, 96),
    "transformer-1-head": lambda: TransformerDates(48, 1, 96),
}
