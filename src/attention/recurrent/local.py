"""Local attention: a query attends to the keys in a window around one position, p.

Luong attention compares a query with every key; local attention compares it only with the keys from
p - D to p + D. *Monotonic* alignment takes p = t, the query's own position. *Predictive* alignment
computes p from the query as S · sigmoid(v · tanh(W · query)), which can lie anywhere in a sequence
of S keys. A Gaussian around p then favours the keys near it. p is learned through the Gaussian,
because the choice of the window's keys has no gradient.

The keys of each window are gathered. Time and memory for a query grow with the 2D + 1 keys of its
window and not with the sequence.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    require_dtype_of,
    require_mask,
    require_same_sequences,
    require_size,
    require_vectors,
)
from attention.precision import to_float32
from attention.recurrent.luong import LuongAttention


class LocalAttention(nn.Module):
    """Luong attention within the window [p - D, p + D] of each query.

    Predictive alignment multiplies the weights, after the softmax, by the Gaussian exp(-(s - p)² /
    2σ²) with σ = D / 2, so that their sum is less than 1. Parameters by name: those of `attention`,
    a `LuongAttention`; for predictive alignment also `w_p.weight` (query_dim, query_dim) and
    `v_p.weight` (1, query_dim).

    Args:
        query_dim, key_dim, score: as for `LuongAttention`.
        half_width: D, the reach of the window to either side.
        alignment: "monotonic" or "predictive".

    Raises:
        ValueError: for an alignment that does not exist, and as `LuongAttention` does.

    Cost:
        O(query · D · key_dim) time and memory. "general" adds O(query · query_dim · key_dim) time.
        "concat" adds O(query · D · key_dim · query_dim) time and O(query · D · query_dim) memory,
        since a key is projected once for each window that it lies in. The prediction adds O(query ·
        query_dim²) time. Returned weights add query · key zeros.

    Source:
        Luong, Pham and Manning 2015, §3.2, equations 9 and 10.

    Example:
        >>> import torch
        >>> from attention import LocalAttention
        >>> attention = LocalAttention(4, 4, half_width=1, score="dot", alignment="monotonic")
        >>> attention(torch.zeros(1, 3, 4), torch.zeros(1, 5, 4))[1]
        tensor([[[0.5000, 0.5000, 0.0000, 0.0000, 0.0000],
                 [0.3333, 0.3333, 0.3333, 0.0000, 0.0000],
                 [0.0000, 0.3333, 0.3333, 0.3333, 0.0000]]])
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        half_width: int,
        *,
        score: Literal["dot", "general", "concat"] = "general",
        alignment: Literal["monotonic", "predictive"] = "predictive",
    ) -> None:
        super().__init__()
        require_size("half_width", half_width)
        if alignment not in ("monotonic", "predictive"):
            raise ValueError(f'alignment must be "monotonic" or "predictive", got {alignment!r}')
        self.half_width, self.alignment = half_width, alignment
        self.attention = LuongAttention(query_dim, key_dim, score)
        if alignment == "predictive":
            self.w_p = nn.Linear(query_dim, query_dim, bias=False)
            self.v_p = nn.Linear(query_dim, 1, bias=False)

    def forward(
        self,
        query: Float[Tensor, "batch query query_dim"],
        key: Float[Tensor, "batch key key_dim"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        first_query: int = 0,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch query key_dim"], Float[Tensor, "batch query key"] | None]:
        """Attend from every query to its window.

        Args:
            query: (batch, query, query_dim).
            key: (batch, key, key_dim), which are the values too.
            mask: boolean, True = may attend; (query, key), or three axes that broadcast to (batch,
                query, key). S ends at the last key that a query may attend to: padding does not
                count. A query with no such key in its window gets weights 0 and context 0.
            first_query: the position of the first query, counted from 0 as the keys are, for a
                decoder that attends step by step. It matters for monotonic alignment only.
            need_weights: False returns None for the weights, and no query × key tensor is made.

        Returns:
            context (batch, query, key_dim) and weights (batch, query, key), 0 outside the windows.

        Raises:
            ValueError: for shapes that do not fit.
            TypeError: for integer tensors and for masks that are not boolean.
        """
        attention, reach = self.attention, self.half_width
        require_vectors("query", query, "batch query query_dim", last=attention.query_dim)
        require_vectors("key", key, "batch key key_dim", last=attention.key_dim)
        require_same_sequences(query, key, key)
        require_dtype_of(self, query=query)
        require_size("first_query", first_query, least=0)
        (batch, n_queries, _), n_keys = query.shape, key.shape[1]
        if mask is None:
            mask = torch.ones(1, n_keys, dtype=torch.bool, device=key.device)
        require_mask(mask, (batch, n_queries, n_keys))
        mask = mask.expand(*mask.shape[:-1], n_keys)

        p = self.positions(query, mask, first_query)[..., None]  # (batch, query, 1)
        # 2D + 1 whole numbers, from the first in [p - D, p + D]. The last of them is beyond p + D
        # where p is not a whole number; others lie before the first key or after the last one.
        window = (p - reach).ceil().long() + torch.arange(2 * reach + 1, device=key.device)
        inside = ((window - p).abs() <= reach) & (window >= 0) & (window < n_keys)
        window = window.clamp(0, n_keys - 1)  # (batch, query, window)
        inside &= mask.expand(batch, n_queries, n_keys).gather(-1, window)
        keys = key[torch.arange(batch, device=key.device)[:, None, None], window]

        # Every query has keys of its own, so each query becomes a batch entry of its own.
        keys, inside = keys.flatten(0, 1), inside.flatten(0, 1)[:, None]
        context, weights = attention.attend(query.flatten(0, 1)[:, None], keys, keys, inside)
        if self.alignment == "predictive":
            gaussian = torch.exp(-2 * ((window - p) / reach) ** 2)  # σ = D/2, so 2σ² = D²/2
            gaussian = gaussian.to(weights.dtype).flatten(0, 1)[:, None]
            weights = weights * gaussian  # (batch · query, 1, window)
            context = weights @ keys
        context = context.view(batch, n_queries, key.shape[-1])
        if not need_weights:
            return context, None
        zeros = weights.new_zeros(batch, n_queries, n_keys)
        return context, zeros.scatter_add(-1, window, weights.view(window.shape))

    def positions(
        self,
        query: Float[Tensor, "batch query query_dim"],
        mask: Bool[Tensor, "... key"],
        first_query: int = 0,
    ) -> Shaped[Tensor, "batch query"]:
        """Return p, the centre of each query's window, in float32 for half precision too."""
        if self.alignment == "monotonic":
            t = torch.arange(first_query, first_query + query.shape[1], device=query.device)
            return t.expand(query.shape[:2])
        ends = torch.arange(1, mask.shape[-1] + 1, device=query.device)
        length = (mask * ends).amax(-1)  # S, (query) or (batch, query) or with size 1
        # In half precision the positions near 3,000 are 2 (float16) or 16 (bfloat16) apart.
        w_p, v_p = to_float32(self.w_p.weight), to_float32(self.v_p.weight)
        with torch.autocast(query.device.type, enabled=False):
            scores = F.linear(torch.tanh(F.linear(to_float32(query), w_p)), v_p)
            return length * torch.sigmoid(scores).squeeze(-1)
