"""A recurrent encoder that reads a sentence both ways and keeps a state for every token.

Before attention, a decoder got one vector for the whole sentence. This encoder keeps a state for
every token, made of one state that has read up to it from the left and one from the right, and a
decoder (`recurrent_decoders`) asks these states anew at every step. Reading takes one step after
the other, each of O(hidden_dim · (d_embedding + hidden_dim)), where self-attention takes all tokens
at once.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.arguments import check_size, check_token_ids
from attention.embedding import TokenEmbedding


class BidirectionalEncoder(nn.Module):
    """Two GRUs over the embedded tokens, one from each end; their states side by side.

    Parameters by name: those of `embed` and of `gru`, an nn.GRU. It resets the state after its
    product, r · (U · h), where the paper resets it before, U · (r · h).

    Args:
        vocab_size: how many tokens the vocabulary has.
        d_embedding: the width of an embedded token.
        hidden_dim: the width of a state in each direction.
        pad_id: the id of the padding, which is not read.

    Source:
        Bahdanau, Cho and Bengio 2014, §3.2 and appendix A.2.1.

    Example:
        >>> import torch
        >>> from attention import BidirectionalEncoder
        >>> encoder = BidirectionalEncoder(vocab_size=9, d_embedding=4, hidden_dim=3)
        >>> padded, alone = torch.tensor([[5, 6, 0]]), torch.tensor([[5, 6]])
        >>> torch.allclose(encoder(padded)[:, :2], encoder(alone))
        True
    """

    def __init__(
        self, vocab_size: int, d_embedding: int, hidden_dim: int, *, pad_id: int = 0
    ) -> None:
        super().__init__()
        check_size("hidden_dim", hidden_dim)
        self.pad_id = pad_id
        self.embed = TokenEmbedding(vocab_size, d_embedding, pad_id=pad_id)
        self.gru = nn.GRU(d_embedding, hidden_dim, batch_first=True, bidirectional=True)

    def forward(self, token_ids: Int[Tensor, "batch key"]) -> Float[Tensor, "batch key key_dim"]:
        """Read the sentences from both ends.

        Args:
            token_ids: (batch, key), padded on the right.

        Returns:
            One state for every token, (batch, key, key_dim), where key_dim is 2 · hidden_dim. The
            first half of the columns has read the tokens up to this one, the second half those from
            it on. Padding is not read, and its rows are 0. Mask it.

        Raises:
            ValueError: for padding in front of a token.
        """
        check_token_ids(token_ids)
        is_token = token_ids != self.pad_id
        if (is_token[:, 1:] & ~is_token[:, :-1]).any():
            raise ValueError(
                f"token_ids has padding (pad_id={self.pad_id}) in front of a token; pad on the "
                "right, as Vocabulary.encode_batch does"
            )
        # Packing leaves out the padding, which the GRU from the right would else read first. It
        # refuses a length of 0: of a sentence of nothing but padding, one token is read.
        lengths = is_token.sum(1).clamp(min=1).cpu()
        x = self.embed(token_ids)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = self.gru(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        return states.masked_fill(~is_token[..., None], 0.0)
