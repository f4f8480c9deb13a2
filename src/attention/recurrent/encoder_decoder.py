"""A recurrent encoder that reads a sentence both ways and keeps a state for every token.

Before attention, a decoder got one vector for the whole sentence. This encoder keeps a state for
every token, made of one state that has read up to it from the left and one from the right, and a
decoder (`recurrent_decoders`) asks these states anew at every step. Reading takes one step after
the other, each of O(hidden_dim · (d_embedding + hidden_dim)), where self-attention takes all tokens
at once.

How a recurrent decoder writes: its first state, teacher forcing, greedy choice.

The decoder writes one token per step, from its state, from the token before and from what its
attention returns. In training the token before is the right one, whatever the decoder would have
written: teacher forcing. In use it is the decoder's own. Writing takes one step after the other,
and the attention of all steps costs O(target · source · width).

Two recurrent decoders with attention, which differ in the state that asks.

Bahdanau's decoder asks *before* its recurrence: the previous state, s_{t-1}, attends to the encoded
sentence, and the context enters the step that makes s_t. Luong's asks *after* it: the current
state, s_t, attends, and context and state are combined by tanh(W_c · [context; s_t]) before the
output. In Luong's the recurrence knows nothing of the attention, unless *input feeding* hands it
the combined vector at the next step. A step costs O(width²) for the recurrence and one query to all
keys: O(key · hidden_dim) in Bahdanau's, O(key · key_dim) with "dot" and "general" in Luong's.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.arguments import require_size, require_token_ids, require_vectors
from attention.embedding import TokenEmbedding
from attention.recurrent.additive import AdditiveAttention
from attention.recurrent.luong import LuongAttention


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
        require_size("hidden_dim", hidden_dim)
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
        require_token_ids(token_ids)
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
        require_size("key_dim", key_dim)
        require_size("hidden_dim", hidden_dim)
        if key_dim % 2:
            raise ValueError(f"key_dim must be 2 · the encoder's hidden_dim, got {key_dim}")
        self.key_dim, self.pad_id = key_dim, pad_id
        self.embed = TokenEmbedding(vocab_size, d_embedding, pad_id=pad_id)
        self.w_s = nn.Linear(key_dim // 2, hidden_dim)

    def first_state(
        self, encoded: Float[Tensor, "batch key key_dim"]
    ) -> Float[Tensor, "batch hidden_dim"]:
        """tanh(W_s · h), h the first token's state from the right, which has read all (A.2.2)."""
        require_vectors("encoded", encoded, "batch key key_dim", last=self.key_dim)
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
        require_token_ids(token_ids)
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
        require_size("max_length", max_length)
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


Attend = Callable[[Tensor], tuple[Tensor, Tensor]]  # queries -> (context, weights)


class BahdanauDecoder(RecurrentDecoder):
    """The previous state asks, by additive attention, and the context enters the recurrence.

    Parameters by name: `embed` and `w_s` as in `RecurrentDecoder`, `attention` as in
    `AdditiveAttention`, `cell`, an nn.GRUCell, and `w_o` (vocab_size, hidden_dim + key_dim +
    d_embedding). The paper puts a layer of maxout units between these and the output.

    Args:
        vocab_size, d_embedding, pad_id: as for `BidirectionalEncoder`.
        key_dim: the width of the encoded tokens.
        hidden_dim: that of a state, and of the attention's hidden layer.

    Source:
        Bahdanau, Cho and Bengio 2014, §3.1 and appendix A.2.2.

    Example:
        >>> import torch
        >>> from attention import BahdanauDecoder
        >>> decoder = BahdanauDecoder(vocab_size=9, d_embedding=4, key_dim=6, hidden_dim=5)
        >>> [x.shape for x in decoder(torch.tensor([[1, 4, 5]]), torch.randn(1, 7, 6))]
        [torch.Size([1, 3, 9]), torch.Size([1, 3, 7])]
    """

    def __init__(
        self, vocab_size: int, d_embedding: int, key_dim: int, hidden_dim: int, *, pad_id: int = 0
    ) -> None:
        super().__init__(vocab_size, d_embedding, key_dim, hidden_dim, pad_id)
        self.attention = AdditiveAttention(hidden_dim, key_dim, hidden_dim)
        self.cell = nn.GRUCell(d_embedding + key_dim, hidden_dim)
        self.w_o = nn.Linear(hidden_dim + key_dim + d_embedding, vocab_size)

    def attend_to(
        self, encoded: Float[Tensor, "batch key key_dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> tuple[Float[Tensor, "batch hidden_dim"], Attend]:
        """Return the first state, and a function from queries to (context, weights)."""
        state = self.first_state(encoded)
        # The keys stay the same while the decoder writes: they are projected once.
        projected = self.attention.w_k(encoded)
        return state, partial(self.attention, key=encoded, mask=mask, projected_key=projected)

    def step(
        self,
        embedded: Float[Tensor, "batch d_embedding"],
        state: Float[Tensor, "batch hidden_dim"],
        attend: Attend,
    ) -> tuple[
        Float[Tensor, "batch vocab_size"],
        Float[Tensor, "batch key"],
        Float[Tensor, "batch hidden_dim"],
    ]:
        """From s_{t-1} and the token before, the logits, the weights and s_t."""
        context, weights = attend(state[:, None])  # s_{t-1} asks
        context = context[:, 0]  # (batch, key_dim)
        state = self.cell(torch.cat((embedded, context), dim=-1), state)  # s_t
        logits = self.w_o(torch.cat((state, context, embedded), dim=-1))
        return logits, weights[:, 0], state


class LuongDecoder(RecurrentDecoder):
    """The current state asks, and context and state are combined after the recurrence.

    Parameters by name: `embed` and `w_s` as in `RecurrentDecoder`, `attention` as in
    `LuongAttention`, `cell`, an nn.GRUCell, `w_c` (hidden_dim, key_dim + hidden_dim), without a
    bias, and `w_o` (vocab_size, hidden_dim). The paper has four layers of LSTM in place of the GRU.

    Args:
        vocab_size, d_embedding, key_dim, hidden_dim, pad_id: as for `BahdanauDecoder`.
        score: as for `LuongAttention`; "dot" needs hidden_dim = key_dim.
        input_feeding: whether the combined vector of one step goes into the recurrence of the next,
            beside the token (§3.3).

    Source:
        Luong, Pham and Manning 2015, §3, equations 5 and 6, and §3.3.

    Example:
        >>> import torch
        >>> from attention import LuongDecoder
        >>> decoder = LuongDecoder(vocab_size=9, d_embedding=4, key_dim=6, hidden_dim=5)
        >>> token_ids, _ = decoder.greedy(torch.randn(2, 7, 6), start_id=1, end_id=2, max_length=4)
        >>> token_ids.shape[0], token_ids.shape[1] <= 4
        (2, True)
    """

    def __init__(
        self,
        vocab_size: int,
        d_embedding: int,
        key_dim: int,
        hidden_dim: int,
        *,
        score: Literal["dot", "general", "concat"] = "general",
        input_feeding: bool = True,
        pad_id: int = 0,
    ) -> None:
        super().__init__(vocab_size, d_embedding, key_dim, hidden_dim, pad_id)
        self.input_feeding = input_feeding
        self.attention = LuongAttention(hidden_dim, key_dim, score)
        self.cell = nn.GRUCell(d_embedding + (hidden_dim if input_feeding else 0), hidden_dim)
        self.w_c = nn.Linear(key_dim + hidden_dim, hidden_dim, bias=False)
        self.w_o = nn.Linear(hidden_dim, vocab_size)

    def attend_to(
        self, encoded: Float[Tensor, "batch key key_dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> tuple[tuple[Float[Tensor, "batch hidden_dim"], Float[Tensor, "batch hidden_dim"]], Attend]:
        """Return the first state, s and a vector of zeros, and a function as in Bahdanau's."""
        state = self.first_state(encoded)
        return (state, torch.zeros_like(state)), partial(self.attention, key=encoded, mask=mask)

    def step(
        self,
        embedded: Float[Tensor, "batch d_embedding"],
        state: tuple[Float[Tensor, "batch hidden_dim"], Float[Tensor, "batch hidden_dim"]],
        attend: Attend,
    ) -> tuple[
        Float[Tensor, "batch vocab_size"],
        Float[Tensor, "batch key"],
        tuple[Float[Tensor, "batch hidden_dim"], Float[Tensor, "batch hidden_dim"]],
    ]:
        """From s_{t-1}, what was combined there and the token before, the same for t."""
        state, combined = state
        entering = torch.cat((embedded, combined), dim=-1) if self.input_feeding else embedded
        state = self.cell(entering, state)  # s_t
        context, weights = attend(state[:, None])  # s_t asks
        combined = torch.tanh(self.w_c(torch.cat((context[:, 0], state), dim=-1)))
        return self.w_o(combined), weights[:, 0], (state, combined)
