"""How a recurrent decoder writes: its first state, teacher forcing, greedy choice.

The decoder writes one token per step, from its state, from the token before and from what its
attention returns. In training the token before is the right one, whatever the decoder would have
written: teacher forcing. In use it is the decoder's own. Writing takes one step after the other,
and the attention of all steps costs O(target · source · width).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention.arguments import check_size, check_token_ids, check_vectors
from attention.embedding import TokenEmbedding


class RecurrentDecoder(nn.Module):
    """What `BahdanauDecoder` and `LuongDecoder` share: first state, teacher forcing, greedy choice.

    Each of them brings two methods. `attend_to(encoded, mask)` returns the first state and a
    function from queries to (context, weights). `step(embedded, state, attend)` takes the embedded
    token of the step before and returns logits, weights and the next state. Parameters by name:
    those of `embed`, a `TokenEmbedding`, and `w_s` (hidden_dim, key_dim / 2) with a bias.

    Args:
        vocab_size: how many tokens the vocabulary has.
        d_embedding: the width of an embedded token.
        key_dim: the width of an encoded token, twice the encoder's hidden_dim.
        hidden_dim: the width of the decoder's state.
        pad_id: the id of the padding, which follows the end of a sentence.
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

        Args:
            token_ids: (batch, target), the start token first.
            encoded: (batch, key, key_dim), from `BidirectionalEncoder`.
            mask: boolean, True = may attend, (batch, 1, key) as `padding_mask(ids, pad_id)[:, 0]`.

        Returns:
            The logits of the token that follows each, (batch, target, vocab_size), and the weights,
            (batch, target, key).

        Raises:
            ValueError: for another number of sentences in token_ids than in encoded.
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

        Args:
            encoded: (batch, key, key_dim), as for `forward`.
            mask: as for `forward`.
            start_id: the token that the first step is given.
            end_id: the token that ends a sentence.
            max_length: the greatest number of tokens that are written.

        Returns:
            The tokens, (batch, target), without the start token, with the end token, then pad_id;
            and the weights, (batch, target, key).
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
