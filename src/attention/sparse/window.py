"""Sliding window: each query attends to its neighbours instead of all n keys.

A query then takes `window` + 1 scores instead of n, and it sees further through several layers,
because information moves on by the window's reach with each.

This module makes the mask for you to look at. Like every mask of a sparse pattern (`global_mask`,
`random_mask`, `strided_mask`, `fixed_mask`) it has n × n entries, and a dense product under it
costs n² all the same. Patterns are combined with `|`. The functions that save time and memory never
make the mask: `sparse_attention`, `strided_attention` and `fixed_attention`.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from attention.arguments import require_size


def window_reach(window: int, *, causal: bool = False) -> tuple[int, int]:
    """How many keys before and after the query's own a window reaches: (before, after)."""
    require_size("window", window, least=0)
    if not causal and window % 2:
        raise ValueError(
            f"window={window} is odd, and half of it lies on each side of the query; take "
            f"{window - 1} or {window + 1}, or causal=True, where all of it lies before"
        )
    return (window, 0) if causal else (window // 2, window // 2)


def sliding_window_mask(
    seq: int, window: int, *, causal: bool = False, device: torch.device | str | None = None
) -> Bool[Tensor, "seq seq"]:
    """True where the key is at most window/2 away; where causal, at most window before the query.

    Args:
        seq: how many tokens.
        window: how many keys besides the query's own. Half of them lie on each side, so the number
            must be even; where causal, all of them lie before the query.
        causal: whether keys in the query's future are hidden.
        device: where the mask is made; torch's default unless given.

    Returns:
        The mask, (query, key).

    Raises:
        ValueError: for an odd window that is not causal.

    Source:
        Beltagy et al. 2020 (Longformer), §3.1, without its dilation.

    Example:
        >>> from attention import sliding_window_mask
        >>> sliding_window_mask(3, 2).int()
        tensor([[1, 1, 0],
                [1, 1, 1],
                [0, 1, 1]], dtype=torch.int32)
    """
    require_size("seq", seq)
    before, after = window_reach(window, causal=causal)
    key = torch.arange(seq, device=device)
    query = key[:, None]
    return (key >= query - before) & (key <= query + after)
