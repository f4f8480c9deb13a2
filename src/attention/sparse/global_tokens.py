"""Global tokens: a few tokens that attend to every token, and that every token attends to.

A global token connects any two tokens in two steps: one layer leads to it, and the next leads from
it. Each global token costs two products of n scores, one for its own row and one for its own
column. This module makes the mask for you to look at, which has n × n numbers; `sparse_attention`
computes with the positions alone.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Bool
from torch import Tensor

from attention.arguments import require_size


def require_global_tokens(global_tokens: Iterable[int], seq: int) -> list[int]:
    """Require positions in the sequence; return each once, in order."""
    if not isinstance(global_tokens, Iterable) or isinstance(global_tokens, Tensor):
        kind = type(global_tokens).__name__
        raise TypeError(f"global_tokens must be a list of ints, got {kind}; write [0] or .tolist()")
    global_tokens = list(global_tokens)  # an iterator can be read once
    for position in global_tokens:
        require_size("a position in global_tokens", position, least=0)
        if position >= seq:
            raise ValueError(
                f"global_tokens has position {position}, and {seq} tokens end at {seq - 1}"
            )
    return sorted(set(global_tokens))


def global_mask(
    seq: int,
    global_tokens: Iterable[int],
    *,
    causal: bool = False,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "seq seq"]:
    """True where the query or the key is a global token: it sees all, and all see it.

    Args:
        seq: how many tokens.
        global_tokens: positions of the global tokens, in any order.
        causal: whether keys in the query's future are hidden.
        device: where the mask is made; torch's default unless given.

    Returns:
        The mask, (query, key).

    Raises:
        ValueError, TypeError: for a position outside the sequence, and for one that is not an int.

    Source:
        Beltagy et al. 2020 (Longformer), §3.1; Zaheer et al. 2020 (BigBird), §2.

    Example:
        >>> from attention import global_mask
        >>> global_mask(3, [0]).int()
        tensor([[1, 1, 1],
                [1, 0, 0],
                [1, 0, 0]], dtype=torch.int32)
    """
    require_size("seq", seq)
    is_global = torch.zeros(seq, dtype=torch.bool, device=device)
    is_global[require_global_tokens(global_tokens, seq)] = True
    mask = is_global[:, None] | is_global
    return mask.tril() if causal else mask
