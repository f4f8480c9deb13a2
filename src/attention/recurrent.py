"""A recurrent encoder that reads both ways, and how a recurrent decoder writes word by word.

Before attention, a decoder got one vector for the whole sentence. This encoder keeps a state for
every token, made of one state that has read up to it from the left and one from the right, and a
decoder (`recurrent_decoders`) asks these states anew at every step. Reading and writing take O(seq)
steps one after the other, in the encoder of O(hidden_dim · (d_embedding + hidden_dim)) each, where
self-attention takes all tokens at once. The decoder's attention costs O(target · source · width).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.arguments import check_size, check_token_ids, check_vectors
from attention.embedding import TokenEmbedding


class BidirectionalEncoder(nn.Module):
    """Two GRUs over the embedded tokens, one from each end; their states side by side.

    Parameters by name: those of `embed` and of `gru`, an nn.GRU. It resets the state after its
    product, r · (U · h), where the paper resets it before, U · (r · h).

    Args:
        vocab_size, d_embedding, pad_id: as for `TokenEmbedding`, d_embedding wide.
        hidden_dim: the width of a state in each direction.

    Source:
        Bahdanau, Cho and Bengio 2014, §3.2 and appendix A.2.1, equation 7.

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
        """token_ids (batch, key) -> states (batch, key, key_dim), key_dim = 2 · hidden_dim.

        The first half of the columns has read the tokens up to this one, the second from it on.
        Padding is not read, and its rows are 0: mask it. Before a token it raises a ValueError.
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


class RecurrentDecoder(nn.Module):
    """What `BahdanauDecoder` and `LuongDecoder` share: first state, teacher forcing, greedy choice.

    Each brings `attend_to(encoded, mask)`, which returns the first state and a function from
    queries to (context, weights), and `step(embedded, state, attend)`: logits, weights, next state.
    Parameters by name: those of `embed`, a `TokenEmbedding`, and `w_s` (hidden_dim, key_dim / 2).
    """

    def __init__(
        self, vocab_size: int, d_embedding: int, key_dim: int, hidden_dim: int, pad_id: int
    ) -> None:
        super().__init__()
        check_size("key_dim", key_dim)
        check_size("hidden_dim", hidden_dim)
        if key_dim % 2:
            raise ValueError(f"key_dim must be 2 · the encoder's hidden_dim, got {key_dim}")
        self.key_dim, self.pad_id = key_dim, pad_id
        self.embed = TokenEmbedding(vocab_size, d_embedding, pad_id=pad_id)
        self.w_s = nn.Linear(key_dim // 2, hidden_dim)

    def first_state(
        self, encoded: Float[Tensor, "batch key key_dim"]
    ) -> Float[Tensor, "batch hidden_dim"]:
        """tanh(W_s · h), h the first token's state from the right, which has read all (A.2.2)."""
        check_vectors("encoded", encoded, "batch key key_dim", last=self.key_dim)
        return torch.tanh(self.w_s(encoded[:, 0, self.key_dim // 2 :]))

    def forward(
        self,
        token_ids: Int[Tensor, "batch target"],
        encoded: Float[Tensor, "batch key key_dim"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch target vocab_size"], Float[Tensor, "batch target key"]]:
        """Teacher forcing: the right token goes in at every step, whatever the step before said.

        token_ids (batch, target), the start token first, encoded (batch, key, key_dim), mask
        (batch, 1, key) as padding_mask(ids, pad_id)[:, 0] is -> logits (batch, target, vocab_size)
        for the token that follows each, and weights (batch, target, key).
        """
        check_token_ids(token_ids)
        state, attend = self.attend_to(encoded, mask)
        if len(token_ids) != len(encoded):
            got = f"{len(token_ids)} and {len(encoded)}"
            raise ValueError(f"token_ids and encoded must be equally many sentences, got {got}")
        logits, weights = [], []
        for embedded in self.embed(token_ids).unbind(1):
            step_logits, step_weights, state = self.step(embedded, state, attend)
            logits.append(step_logits)
            weights.append(step_weights)
        return torch.stack(logits, 1), torch.stack(weights, 1)

    @torch.no_grad()
    def greedy(
        self,
        encoded: Float[Tensor, "batch key key_dim"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        start_id: int,
        end_id: int,
        max_length: int,
    ) -> tuple[Int[Tensor, "batch target"], Float[Tensor, "batch target key"]]:
        """Write the likeliest token at every step, and feed it to the next one.

        encoded and mask as in `forward` -> token_ids (batch, target), at most max_length, without
        the start token, with the end token, then pad_id; and weights (batch, target, key).
        """
        check_size("max_length", max_length)
        state, attend = self.attend_to(encoded, mask)
        token = torch.full((encoded.shape[0],), start_id, device=encoded.device)
        ended = torch.zeros_like(token, dtype=torch.bool)
        tokens, weights = [], []
        while len(tokens) < max_length and not ended.all():
            embedded = self.embed(token[:, None])[:, 0]
            logits, step_weights, state = self.step(embedded, state, attend)
            tokens.append(token := logits.argmax(-1).masked_fill(ended, self.pad_id))
            weights.append(step_weights)
            ended |= token == end_id
        return torch.stack(tokens, 1), torch.stack(weights, 1)
