"""A decoder without attention: the encoder's last states are all that it gets of a sentence.

This is the limit that attention was invented to remove. However long the sentence is, it has to fit
into one vector of key_dim numbers. The decoder gets this vector at every step, where
`BahdanauDecoder` gets a context that is new at every step. Nothing else differs, so a comparison of
the two measures what attention adds.

A step costs O(width²) for the recurrence and O(width · vocab_size) for the logits, however long the
sentence is.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.recurrent.encoder_decoder import Attend, BahdanauDecoder, RecurrentDecoder


class LastStateDecoder(RecurrentDecoder):
    """The encoder's last state in either direction enters every step instead of a context.

    Parameters by name: `embed` and `w_s` as in `RecurrentDecoder`, `cell` and `w_o` as in
    `BahdanauDecoder`. The weights that `forward` and `greedy` return are 0, because nothing is
    attended to.

    Deviations from the paper: its encoder reads in one direction; here it is `BidirectionalEncoder`
    with a last state at either end, and the decoder starts and steps as `BahdanauDecoder` does. The
    paper's output layer is made of maxout units.

    Args:
        vocab_size, d_embedding, key_dim, pad_id: as for `BahdanauDecoder`.
        hidden_dim: the width of the decoder's state.

    Source:
        Cho et al. 2014, §2.2 and appendix A. Sutskever, Vinyals and Le 2014 (§2) give the vector to
        the first step alone.

    Example:
        >>> import torch
        >>> from attention.recurrent.last_state import LastStateDecoder
        >>> decoder = LastStateDecoder(vocab_size=9, d_embedding=4, key_dim=6, hidden_dim=5)
        >>> encoded = torch.randn(1, 7, 6)
        >>> logits, _ = decoder(torch.tensor([[1, 4, 5]]), encoded)
        >>> encoded[:, 1:6] = 0  # between the two last states
        >>> torch.equal(decoder(torch.tensor([[1, 4, 5]]), encoded)[0], logits)
        True
    """

    def __init__(
        self, vocab_size: int, d_embedding: int, key_dim: int, hidden_dim: int, *, pad_id: int = 0
    ) -> None:
        super().__init__(vocab_size, d_embedding, key_dim, hidden_dim, pad_id)
        self.cell = nn.GRUCell(d_embedding + key_dim, hidden_dim)
        self.w_o = nn.Linear(hidden_dim + key_dim + d_embedding, vocab_size)

    def attend_to(
        self, encoded: Float[Tensor, "batch key key_dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> tuple[Float[Tensor, "batch hidden_dim"], Attend]:
        """Return the first state, and a function that returns the last states for every query."""
        self.require_encoded(encoded, mask)
        batch, n_keys, _ = encoded.shape
        last = torch.full((batch,), n_keys - 1, device=encoded.device)
        if mask is not None:  # the last token, before the padding
            last = (mask[..., 0, :] * torch.arange(n_keys, device=encoded.device)).amax(-1)
        from_left = encoded[torch.arange(batch, device=encoded.device), last, : self.key_dim // 2]
        from_right = encoded[:, 0, self.key_dim // 2 :]
        context = torch.cat((from_left, from_right), dim=-1)[:, None]  # (batch, 1, key_dim)
        no_weights = encoded.new_zeros(batch, 1, n_keys)
        return self.first_state(encoded), lambda query: (context, no_weights)

    step = BahdanauDecoder.step
