"""Sparse patterns to look at: which keys each query may attend to, as boolean masks.

A sparse pattern lets every query attend to a few keys instead of all n. Here are the sliding window
and global tokens; `random_mask`, `strided_mask` and `fixed_mask` stand beside their own
computations. Patterns are combined with `|`: Longformer is window and global tokens, BigBird has
random keys as well.

A mask has n × n entries, and a dense product under it costs n² all the same. It is for looking at
small patterns and for checking: the computations that save time and memory are `sparse_attention`,
`strided_attention` and `fixed_attention`, which never make it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from attention.arguments import check_size


def window_reach(window: int, *, causal: bool = False) -> tuple[int, int]:
    """How far a window of so many keys besides the query's own reaches: (before, after)."""
    check_size("window", window, least=0)
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
    check_size("seq", seq)
    before, after = window_reach(window, causal=causal)
    key = torch.arange(seq, device=device)
    query = key[:, None]
    return (key >= query - before) & (key <= query + after)


def check_global_tokens(global_tokens: Sequence[int], seq: int) -> list[int]:
    """Refuse what is no position in the sequence; return the positions, each once, in order."""
    for position in global_tokens:
        check_size("a position in global_tokens", position, least=0)
        if position >= seq:
            raise ValueError(
                f"global_tokens has position {position}, and {seq} tokens end at {seq - 1}"
            )
    return sorted(set(global_tokens))


def global_mask(
    seq: int,
    global_tokens: Sequence[int],
    *,
    causal: bool = False,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "seq seq"]:
    """True where the query or the key is a global token: it sees all, and all see it.

    Args:
        seq: how many tokens.
        global_tokens: positions of the global tokens, in any order.
        causal: whether no key lies in the query's future.
        device: where the mask is made; torch's default unless given.

    Returns:
        The mask, (query, key).

    Raises:
        ValueError, TypeError: for a position outside the sequence, for one that is no int.

    Source:
        Beltagy et al. 2020 (Longformer), §3.1; Zaheer et al. 2020 (BigBird), §2.

    Example:
        >>> from attention import global_mask
        >>> global_mask(3, [0]).int()
        tensor([[1, 1, 1],
                [1, 0, 0],
                [1, 0, 0]], dtype=torch.int32)
    """
    check_size("seq", seq)
    is_global = torch.zeros(seq, dtype=torch.bool, device=device)
    is_global[check_global_tokens(global_tokens, seq)] = True
    mask = is_global[:, None] | is_global
    return mask.tril() if causal else mask
