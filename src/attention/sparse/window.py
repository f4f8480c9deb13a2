"""Sparse patterns to look at: which keys each query may attend to, as boolean masks.

A sparse pattern lets every query attend to a few keys instead of all n. Here are the sliding window
and global tokens; `random_mask`, `strided_mask` and `fixed_mask` stand beside their own
computations. Patterns are combined with `|`: Longformer is window and global tokens, BigBird has
random keys as well.

A mask has n × n entries, and a dense product under it costs n² all the same. It is for looking at
small patterns and for checking: the computations that save time and memory are `sparse_attention`,
`strided_attention` and `fixed_attention`, which never make it.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from attention.arguments import require_size


def window_reach(window: int, *, causal: bool = False) -> tuple[int, int]:
    """How far a window of so many keys besides the query's own reaches: (before, after)."""
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
    """True where the key is near: at most window/2 away, or causal, at most window before.

    Args:
        seq: how many tokens.
        window: how many keys besides the query's own. Half of them lie on each side, so that it
            must be even; causal, all of them lie before.
        causal: whether no key lies in the query's future.
        device: where the mask is made; torch's default unless given.

    Returns:
        The mask, (query, key).

    Raises:
        ValueError: for an odd window that is not causal.

    Source:
        Beltagy et al. 2020 (Longformer), §3.1.

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
