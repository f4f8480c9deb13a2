"""A recurrent encoder, and two recurrent decoders that attend to its states.

Before attention, a decoder got one vector for the whole sentence. `BidirectionalEncoder` keeps a
state for every token, from two GRUs that read the sentence from either end, and a decoder attends
to these states at every step. It writes one token per step, from its state, the previous token and
the context that attention returns. In training the previous token is the correct one (teacher
forcing); in use it is the one that the decoder wrote.

Bahdanau's decoder attends *before* its recurrence: the query is the previous state, s_{t-1}, and
the context enters the step that computes s_t. Luong's attends *after* it: the query is the current
state, s_t, and the output is computed from tanh(W_c · [context; s_t]). Its recurrence sees nothing
of the context, unless *input feeding* hands it this vector at the next step.

Reading and writing take one step after the other, whereas self-attention takes all tokens at once.
A step of the encoder costs O(hidden_dim · (d_embedding + hidden_dim)). A step of a decoder costs
O(width²) for the recurrence, O(width · vocab_size) for the logits, and for one query to all keys
O(key · (hidden_dim + key_dim)) in Bahdanau's decoder and with "concat", or O(key · key_dim) with
"dot" and "general".
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attention.arguments import (
    require_dtype_of,
    require_index,
    require_mask,
    require_size,
    require_token_ids,
    require_vectors,
)
from attention.embedding import TokenEmbedding
from attention.recurrent.additive import AdditiveAttention
from attention.recurrent.luong import LuongAttention

Attend = Callable[[Tensor], tuple[Tensor, Tensor]]  # queries -> (context, weights)


class BidirectionalEncoder(nn.Module):
    """Two GRUs read the embedded tokens, one from each end; their states are placed side by side.

    Parameters by name: those of `embed`, a `TokenEmbedding`, and of `gru`, an nn.GRU. Deviation
    from the paper: nn.GRU resets the state after its product, r · (U · h); the paper resets it
    before that, U · (r · h). Packing reads the lengths from a tensor, so that `torch.compile` cuts
    this module into several graphs, and `torch.export` refuses it.

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
        require_size("vocab_size", vocab_size)
        require_size("d_embedding", d_embedding)
        require_size("hidden_dim", hidden_dim)
        require_size("pad_id", pad_id, least=0)
        self.pad_id = pad_id
        self.embed = TokenEmbedding(vocab_size, d_embedding, pad_id=pad_id)
        self.gru = nn.GRU(d_embedding, hidden_dim, batch_first=True, bidirectional=True)

    def forward(self, token_ids: Int[Tensor, "batch key"]) -> Float[Tensor, "batch key key_dim"]:
        """Read the sentences from both ends.

        Args:
            token_ids: (batch, key), padded on the right.

        Returns:
            One state for every token, (batch, key, key_dim), where key_dim is 2 · hidden_dim. The
            first half of the columns has read the tokens up to this one, and the second half has
            read this one and those after it. Padding is not read and its rows are 0; mask it in the
            decoder.

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
        # Packing leaves out the padding, which the GRU from the right would otherwise read first.
        # It refuses a length of 0, so one token is read of a sentence that is all padding.
        lengths = is_token.sum(1).clamp(min=1).cpu()
        x = self.embed(token_ids)
        if not len(token_ids):  # which packing refuses too
            return x.new_zeros(*token_ids.shape, 2 * self.gru.hidden_size)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = self.gru(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        return states.masked_fill(~is_token[..., None], 0.0)


class RecurrentDecoder(nn.Module):
    """What `BahdanauDecoder` and `LuongDecoder` share: first state, teacher forcing, greedy choice.

    Each of them adds two methods. `attend_to(encoded, mask)` returns the first state and a function
    from queries to (context, weights). `step(embedded, state, attend)` takes the embedded previous
    token and returns logits, weights and the next state. Parameters by name: those of `embed`, a
    `TokenEmbedding`, and `w_s` (hidden_dim, key_dim / 2) with a bias.

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
        require_size("vocab_size", vocab_size)
        require_size("d_embedding", d_embedding)
        require_size("key_dim", key_dim)
        require_size("hidden_dim", hidden_dim)
        require_size("pad_id", pad_id, least=0)
        if key_dim % 2:
            raise ValueError(f"key_dim must be 2 · the encoder's hidden_dim, got {key_dim}")
        self.key_dim, self.pad_id = key_dim, pad_id
        self.embed = TokenEmbedding(vocab_size, d_embedding, pad_id=pad_id)
        self.w_s = nn.Linear(key_dim // 2, hidden_dim)

    def require_encoded(
        self, encoded: Float[Tensor, "batch key key_dim"], mask: Bool[Tensor, "..."] | None
    ) -> None:
        """Require encoded tokens of width key_dim, and a mask that fits one query to them."""
        require_vectors("encoded", encoded, "batch key key_dim", last=self.key_dim)
        require_dtype_of(self, encoded=encoded)
        if mask is not None:
            require_mask(mask, (encoded.shape[0], 1, encoded.shape[1]))

    def first_state(
        self, encoded: Float[Tensor, "batch key key_dim"]
    ) -> Float[Tensor, "batch hidden_dim"]:
        """tanh(W_s · h), where h is the first token's state in the direction from the right.

        That state has read the whole sentence (Bahdanau, Cho and Bengio 2014, appendix A.2.2).
        """
        return torch.tanh(self.w_s(encoded[:, 0, self.key_dim // 2 :]))

    def forward(
        self,
        token_ids: Int[Tensor, "batch target"],
        encoded: Float[Tensor, "batch key key_dim"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch target vocab_size"], Float[Tensor, "batch target key"]]:
        """Teacher forcing: every step is given the correct previous token.

        Args:
            token_ids: (batch, target), the start token first.
            encoded: (batch, key, key_dim), from `BidirectionalEncoder`.
            mask: boolean, True = may attend, (batch, 1, key) as `padding_mask(ids, pad_id)[:, 0]`.

        Returns:
            The logits of the token that follows each, (batch, target, vocab_size), and the weights,
            (batch, target, key).

        Raises:
            ValueError: for different numbers of sentences in token_ids and encoded.
        """
        require_token_ids(token_ids)
        state, attend = self.attend_to(encoded, mask)
        if len(token_ids) != len(encoded):
            got = f"{len(token_ids)} and {len(encoded)}"
            raise ValueError(f"token_ids and encoded must have the same batch, got {got}")
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
        """Write the likeliest token at every step, and feed it to the next step.

        Args:
            encoded: (batch, key, key_dim), as for `forward`.
            mask: as for `forward`.
            start_id: the token that the first step is given.
            end_id: the token that ends a sentence.
            max_length: how many tokens are written at most.

        Returns:
            The tokens, (batch, target), without the start token but with the end token, which
            pad_id follows; and the weights, (batch, target, key).
        """
        require_size("max_length", max_length)
        start_id, end_id = require_index("start_id", start_id), require_index("end_id", end_id)
        require_size("start_id", start_id, least=0)
        require_size("end_id", end_id, least=0)
        state, attend = self.attend_to(encoded, mask)
        token = torch.full((encoded.shape[0],), start_id, device=encoded.device)
        ended = torch.zeros_like(token, dtype=torch.bool)
        tokens, weights = [], []
        while not tokens or (len(tokens) < max_length and not ended.all()):
            embedded = self.embed(token[:, None])[:, 0]
            logits, step_weights, state = self.step(embedded, state, attend)
            tokens.append(token := logits.argmax(-1).masked_fill(ended, self.pad_id))
            weights.append(step_weights)
            ended |= token == end_id
        return torch.stack(tokens, 1), torch.stack(weights, 1)


class BahdanauDecoder(RecurrentDecoder):
    """The previous state is the query of additive attention; the context enters the recurrence.

    Parameters by name: `embed` and `w_s` as in `RecurrentDecoder`, `attention` as in
    `AdditiveAttention`, `cell`, an nn.GRUCell, and `w_o` (vocab_size, hidden_dim + key_dim +
    d_embedding).

    Deviations from the paper: the logits are one linear layer of s_t, context and embedded token;
    the paper takes s_{t-1} there, and puts a layer of maxout units before the output (A.2.2).
    nn.GRUCell resets the state after its product, r · (U · s); the paper resets it before that,
    U · (r · s). Embedded tokens are multiplied by √d_embedding; in the paper they are not. `greedy`
    takes the likeliest token at every step; the paper searches with a beam (§4.2).

    Args:
        vocab_size, d_embedding, pad_id: as for `BidirectionalEncoder`.
        key_dim: the width of an encoded token, twice the encoder's hidden_dim.
        hidden_dim: the width of the decoder's state, and of the attention's hidden layer.

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
        self.require_encoded(encoded, mask)
        # The keys are the same at every step, so they are projected once.
        keys = self.attention.w_k(encoded)
        attend = partial(self.attention.attend, projected_key=keys, value=encoded, mask=mask)
        return self.first_state(encoded), attend

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
        """Return logits, weights and s_t, from the previous token and s_{t-1}."""
        context, weights = attend(state[:, None])  # the query is s_{t-1}
        context = context[:, 0]  # (batch, key_dim)
        state = self.cell(torch.cat((embedded, context), dim=-1), state)  # s_t
        logits = self.w_o(torch.cat((state, context, embedded), dim=-1))
        return logits, weights[:, 0], state


class LuongDecoder(RecurrentDecoder):
    """The current state is the query; context and state are combined after the recurrence.

    Parameters by name: `embed` and `w_s` as in `RecurrentDecoder`, `attention` as in
    `LuongAttention`, `cell`, an nn.GRUCell, `w_c` (hidden_dim, key_dim + hidden_dim), without a
    bias, and `w_o` (vocab_size, hidden_dim).

    Deviations from the paper: there, encoder and decoder are four layers of LSTM each, in one
    direction (§2 and §4.1). The query is the decoder's top layer, the keys are the encoder's top
    layer, and the decoder starts from the encoder's last states. Here one GRU attends to the states
    of `BidirectionalEncoder` and starts as `BahdanauDecoder` does, so that the two decoders can be
    compared. The paper's output layer has no bias.

    Args:
        vocab_size, d_embedding, key_dim, hidden_dim, pad_id: as for `BahdanauDecoder`.
        score: as for `LuongAttention`; "dot" needs hidden_dim = key_dim.
        input_feeding: whether the combined vector of one step enters the recurrence of the next,
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
        """Return the first state, s_0 and a vector of zeros, and a function like Bahdanau's."""
        self.require_encoded(encoded, mask)
        if self.attention.score == "concat":  # the keys are projected once, as in Bahdanau's
            additive = self.attention.additive
            keys = additive.w_k(encoded)
            attend = partial(additive.attend, projected_key=keys, value=encoded, mask=mask)
        else:
            attend = partial(self.attention.attend, key=encoded, value=encoded, mask=mask)
        state = self.first_state(encoded)
        return (state, torch.zeros_like(state)), attend

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
        """Return logits, weights and the next state, s_t and the combined vector of this step."""
        state, combined = state
        x = torch.cat((embedded, combined), dim=-1) if self.input_feeding else embedded
        state = self.cell(x, state)  # s_t
        context, weights = attend(state[:, None])  # the query is s_t
        combined = torch.tanh(self.w_c(torch.cat((context[:, 0], state), dim=-1)))
        return self.w_o(combined), weights[:, 0], (state, combined)
