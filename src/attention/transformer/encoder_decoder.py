"""The whole transformer, from token ids to logits: the encoder reads, the decoder writes.

The encoder turns the source into one vector per token, computed from the whole source. At every
position of the target, the decoder predicts the next token from these vectors and the target so
far. In training all positions are computed at once, and the causal mask hides the answer from each
of them. In use the target grows by one token per step.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import require_shape, require_size, require_token_ids, require_vectors
from attention.embedding import SinusoidalPositionalEncoding, TokenEmbedding
from attention.masks import padding_mask
from attention.transformer.decoder import Decoder
from attention.transformer.encoder import Encoder


class TransformerOutput(NamedTuple):
    """What `EncoderDecoder` returns; with need_weights=False each list of weights is None."""

    logits: Float[Tensor, "batch target target_vocab"]
    encoder_weights: list[Float[Tensor, "batch heads source source"]] | None
    self_weights: list[Float[Tensor, "batch heads target target"]] | None
    cross_weights: list[Float[Tensor, "batch heads target source"]] | None


class EncoderDecoder(nn.Module):
    """Embeddings, positional encoding, encoder, decoder, and a linear layer to the logits.

    Pad on the right, as `Vocabulary.encode_batch` does, because positions are counted from the
    left. With padding in front, a sentence would have other positions than on its own.

    Modules by name: `source_embedding`, `target_embedding`, `positional_encoding`, ``encoder``,
    ``decoder``, `to_logits`. The paper shares one matrix between both embeddings and `to_logits`.
    Here each has its own, since the two vocabularies may differ.

    Args:
        source_vocab, target_vocab: how many tokens each vocabulary has.
        d_model, n_heads, d_ff, norm_first, activation: as in `EncoderLayer`.
        n_layers: how many layers the encoder has, and how many the decoder has.
        dropout: as in `EncoderLayer`, and for the sum of embedding and positional encoding.
        max_length: the longest source or target.
        pad_id: the id of the padding in both vocabularies. No query attends to it.

    Source:
        Vaswani et al. 2017, figure 1, §3.1 and §3.4.

    Example:
        >>> import torch
        >>> from attention import EncoderDecoder
        >>> model = EncoderDecoder(11, 13, d_model=8, n_heads=2, d_ff=32, n_layers=2)
        >>> source, target = torch.tensor([[4, 9, 2, 0]]), torch.tensor([[1, 5, 7]])
        >>> output = model(source, target)
        >>> output.logits.shape, output.cross_weights[1].shape
        (torch.Size([1, 3, 13]), torch.Size([1, 2, 3, 4]))
        >>> memory, _ = model.encode(source)  # once; then one step for each token
        >>> torch.equal(model.decode(target, memory, source)[0], output.logits)
        True
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        n_layers: int = 6,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: Callable[[Tensor], Tensor] = F.relu,
        max_length: int = 5000,
        pad_id: int = 0,
    ) -> None:
        super().__init__()
        require_size("source_vocab", source_vocab)
        require_size("target_vocab", target_vocab)
        require_size("pad_id", pad_id, least=0)
        self.pad_id = pad_id
        self.source_embedding = TokenEmbedding(source_vocab, d_model, pad_id=pad_id)
        self.target_embedding = TokenEmbedding(target_vocab, d_model, pad_id=pad_id)
        self.positional_encoding = SinusoidalPositionalEncoding(
            d_model, max_length, dropout=dropout
        )
        sizes = (d_model, n_heads, d_ff)
        options = {"dropout": dropout, "norm_first": norm_first, "activation": activation}
        self.encoder = Encoder(*sizes, n_layers=n_layers, **options)
        self.decoder = Decoder(*sizes, n_layers=n_layers, **options)
        self.to_logits = nn.Linear(d_model, target_vocab)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        *,
        need_weights: bool = True,
    ) -> TransformerOutput:
        """Return the logits of the token that follows each token of target, and the weights.

        In training, target is the sentence without its last token, and the logits are compared with
        the sentence without its first token.

        Args:
            source: (batch, source), token ids.
            target: (batch, target), token ids.
            need_weights: as in `MultiHeadAttention.forward`.

        Raises:
            ValueError, TypeError: for shapes that do not fit, for ids that are not integers.
        """
        memory, weights = self.encode(source, need_weights=need_weights)
        logits, *others = self.decode(target, memory, source, need_weights=need_weights)
        return TransformerOutput(logits, weights, *others)

    def encode(
        self, source: Int[Tensor, "batch source"], *, need_weights: bool = True
    ) -> tuple[
        Float[Tensor, "batch source d_model"],
        list[Float[Tensor, "batch heads source source"]] | None,
    ]:
        """Return the encoder's output, (batch, source, d_model), and its weights."""
        require_token_ids(source, "source")
        x = self.positional_encoding(self.source_embedding(source))
        return self.encoder(x, padding_mask(source, self.pad_id), need_weights=need_weights)

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        memory: Float[Tensor, "batch source d_model"],
        source: Int[Tensor, "batch source"],
        *,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch target target_vocab"],
        list[Float[Tensor, "batch heads target target"]] | None,
        list[Float[Tensor, "batch heads target source"]] | None,
    ]:
        """Return (logits, self_weights, cross_weights).

        `memory` is what `encode` returns for `source`, whose ids say which rows are padding.
        """
        require_token_ids(target, "target")
        require_token_ids(source, "source")
        require_vectors("memory", memory, "batch source d_model")
        require_shape("source", source, tuple(memory.shape[:2]), "batch source")
        x = self.positional_encoding(self.target_embedding(target))
        x, self_weights, cross_weights = self.decoder(
            x,
            memory,
            padding_mask(target, self.pad_id),
            padding_mask(source, self.pad_id),
            need_weights=need_weights,
        )
        return self.to_logits(x), self_weights, cross_weights
