"""The book's model: at each of its verbs, a sentence says who acts and who is acted on.

The model has a token embedding, sinusoidal positions, one multi-head attention, and two linear
read-outs of the verb's row. There is no residual connection, no normalisation and no feed-forward
layer, so what the verb's row says about the other words can only have come through attention.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.masks import padding_mask
from attention.multihead import MultiHeadAttention
from attention.text import Vocabulary
from attention.trained.who_and_whom.data import LONGEST, VOCABULARY

HEADS = {8: (1, 2, 4, 8), 12: (1, 2, 3, 4), 16: (1, 2, 4, 8)}  # by d_model
# The pairs (d_model, n_heads) for which weights are stored.
SIZES = [(d_model, n_heads) for d_model, counts in HEADS.items() for n_heads in counts]


class Answer(NamedTuple):
    """What `WhoAndWhom` returns: a logit for every word, and the weights of every head."""

    who: Float[Tensor, "batch vocab_size"]
    whom: Float[Tensor, "batch vocab_size"]
    weights: Float[Tensor, "batch heads query key"]


class WhoAndWhom(nn.Module):
    """Answer who and whom at one verb of each sentence; a sentence with two verbs has two rows.

    Modules by name: `embedding`, `positional_encoding`, `attention`, and the read-outs `to_who` and
    `to_whom`, each an nn.Linear(d_model, vocab_size).

    Args:
        d_model, n_heads: as in `MultiHeadAttention`.
        vocabulary: the words that it knows, the book's unless given.

    Example:
        >>> from attention.trained.who_and_whom import (
        ...     VOCABULARY, WhoAndWhom, draw_sentences, encode
        ... )
        >>> batch = encode(draw_sentences(3, passive=False, places=False, seed=0))
        >>> answer = WhoAndWhom(d_model=8, n_heads=2)(batch.token_ids, batch.verb)
        >>> answer.who.shape == (5, len(VOCABULARY)), answer.weights.shape[:2]
        (True, torch.Size([5, 2]))
    """

    def __init__(self, d_model: int, n_heads: int, vocabulary: Vocabulary = VOCABULARY) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        vocab_size = len(vocabulary)
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id=vocabulary.pad_id)
        self.positional_encoding = SinusoidalPositionalEncoding(d_model, LONGEST)
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.to_who = nn.Linear(d_model, vocab_size)
        self.to_whom = nn.Linear(d_model, vocab_size)

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """The layers whose heads `without_head` can switch off."""
        return [self.attention]

    def embed(self, token_ids: Int64[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"]:
        """Make X: the words, with their positions added.

        Args:
            token_ids: (batch, seq), at most `LONGEST` tokens, padded.
        """
        return self.positional_encoding(self.embedding(token_ids))

    def read(
        self, output: Float[Tensor, "batch seq d_model"], verb: Int64[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch vocab_size"], Float[Tensor, "batch vocab_size"]]:
        """Read who and whom, a logit for every word, off the verb's row of the output.

        Args:
            output: (batch, seq, d_model), what attention returns.
            verb: (batch,), the position of each sentence's verb.
        """
        row = output[torch.arange(len(verb), device=verb.device), verb]  # (batch, d_model)
        return self.to_who(row), self.to_whom(row)

    def forward(
        self, token_ids: Int64[Tensor, "batch seq"], verb: Int64[Tensor, " batch"]
    ) -> Answer:
        """Read the sentences, and answer at their verbs.

        Args:
            token_ids: (batch, seq), at most `LONGEST` tokens, padded.
            verb: (batch,), the position of each sentence's verb.
        """
        mask = padding_mask(token_ids, self.vocabulary.pad_id)
        output, weights = self.attention(self.embed(token_ids), mask=mask)
        return Answer(*self.read(output, verb), weights)
