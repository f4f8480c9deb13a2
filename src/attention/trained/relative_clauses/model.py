"""An encoder of one layer or of two, in pre-norm order, which answers who and whom at each verb.

Two linear read-outs take the row of each token. In a single layer a verb looks at words and their
positions alone; in the second of two layers it looks at what the words have found out about each
other. The feed-forward layer of the one-layer model is wider, so that both models have about the
same number of parameters: 23,362 and 23,326.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from jaxtyping import Float, Int64
from torch import Tensor, nn

from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.masks import padding_mask
from attention.multihead import MultiHeadAttention
from attention.trained.relative_clauses.data import LONGEST, VOCABULARY
from attention.transformer.encoder import Encoder

D_MODEL, N_HEADS = 32, 2
D_FF = {1: 196, 2: 64}  # by number of layers
LAYERS = tuple(D_FF)


class ClauseAnswer(NamedTuple):
    """What `RelativeClauses` returns: logits of every token's row, and each layer's weights."""

    who: Float[Tensor, "batch seq vocab_size"]
    whom: Float[Tensor, "batch seq vocab_size"]
    weights: list[Float[Tensor, "batch heads query key"]] | None


class RelativeClauses(nn.Module):
    """Answer who and whom at each verb.

    Modules by name: `embedding`, `positional_encoding`, `encoder`, an `Encoder` in pre-norm order,
    and the read-outs `to_who` and `to_whom`, each an nn.Linear(d_model, vocab_size).

    Args:
        n_layers: how many layers the encoder has, 1 or 2.

    Raises:
        ValueError: for another number of layers.

    Example:
        >>> from attention.trained.relative_clauses import (
        ...     RelativeClauses, encode_clauses, new_clauses
        ... )
        >>> batch = encode_clauses(new_clauses(3))
        >>> answer = RelativeClauses(n_layers=2)(batch.token_ids)
        >>> answer.who.shape[:2] == batch.who.shape, len(answer.weights)
        (True, 2)
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        require_layers(n_layers)
        vocab_size = len(VOCABULARY)
        self.embedding = TokenEmbedding(vocab_size, D_MODEL, pad_id=VOCABULARY.pad_id)
        self.positional_encoding = SinusoidalPositionalEncoding(D_MODEL, LONGEST)
        self.encoder = Encoder(D_MODEL, N_HEADS, D_FF[n_layers], n_layers=n_layers, norm_first=True)
        self.to_who = nn.Linear(D_MODEL, vocab_size)
        self.to_whom = nn.Linear(D_MODEL, vocab_size)

    @property
    def attentions(self) -> list[MultiHeadAttention]:
        """The layers whose heads `without_head` can switch off."""
        return [layer.self_attention for layer in self.encoder.layers]

    def forward(
        self, token_ids: Int64[Tensor, "batch seq"], *, need_weights: bool = True
    ) -> ClauseAnswer:
        """Read the sentences, and answer at every token; only the answers at verbs mean something.

        Args:
            token_ids: (batch, seq), at most `LONGEST` tokens, padded.
            need_weights: as in `MultiHeadAttention.forward`.
        """
        mask = padding_mask(token_ids, VOCABULARY.pad_id)
        x = self.positional_encoding(self.embedding(token_ids))
        x, weights = self.encoder(x, mask, need_weights=need_weights)
        return ClauseAnswer(self.to_who(x), self.to_whom(x), weights)


def require_layers(n_layers: int) -> None:
    if n_layers not in LAYERS:
        raise ValueError(f"n_layers must be {' or '.join(map(str, LAYERS))}, got {n_layers}")


def file_name(n_layers: int) -> str:
    return f"{n_layers}-layer"


MODELS: dict[str, Callable[[], RelativeClauses]] = {
    file_name(n_layers): partial(RelativeClauses, n_layers) for n_layers in LAYERS
}
