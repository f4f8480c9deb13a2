"""Two recurrent decoders with attention, which differ in the state that asks.

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
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.additive import AdditiveAttention
from attention.luong import LuongAttention
from attention.recurrent_decoding import RecurrentDecoder

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
