"""Sparse patterns to look at: which keys each query may attend to, as boolean masks.

A sparse pattern lets every query attend to a few keys instead of all n. Sliding window, global
tokens and random keys are combined with `|`: Longformer is the first two, BigBird all three. The
Sparse Transformer's strided and fixed patterns reach every earlier key in two steps.

A mask has n × n entries, and a dense product under it costs n² all the same. It is for looking at
small patterns and for checking: the computations that save time and memory are `sparse_attention`,
`strided_attention` and `fixed_attention`, which never make it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
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


def sliding_window_mask(seq: int, window: int, *, causal: bool = False) -> Bool[Tensor, "seq seq"]:
    """True where the key is near: at most window/2 away, or causal, at most window before.

    seq, window -> (query, key). The window counts the keys besides the query's own. Half of them
    lie on each side, so that it must be even; causal, all of them lie before.

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
    query, key = torch.arange(seq)[:, None], torch.arange(seq)
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
    seq: int, global_tokens: Sequence[int], *, causal: bool = False
) -> Bool[Tensor, "seq seq"]:
    """True where the query or the key is a global token: it sees all, and all see it.

    seq, positions of the global tokens -> (query, key). Causal, no key in the query's future.

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
    is_global = torch.zeros(seq, dtype=torch.bool)
    is_global[check_global_tokens(global_tokens, seq)] = True
    mask = is_global[:, None] | is_global
    return mask.tril() if causal else mask


def draw_random_keys(
    seq: int,
    n_random: int,
    *,
    block: int,
    causal: bool = False,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "blocks {n_random}"]:
    """Draw n_random keys for each block of queries, evenly and with replacement.

    seq, n_random, block -> (blocks, n_random), positions among the keys. The queries of a block
    share their keys, so that the keys are fetched once for all of them, as in BigBird's own
    computation; block=1 draws for each query. A key that is drawn twice counts once. Causal, the
    keys are drawn up to the end of the block. The numbers come from generator, torch's default
    unless given.

    Source:
        Zaheer et al. 2020 (BigBird), §2 and appendix D.

    Example:
        >>> from attention import draw_random_keys
        >>> draw_random_keys(seq=10, n_random=2, block=4).shape
        torch.Size([3, 2])
    """
    check_size("seq", seq)
    check_size("n_random", n_random)
    check_size("block", block)
    starts = torch.arange(0, seq, block)[:, None]
    n_keys = (starts + block).clamp(max=seq) if causal else torch.full_like(starts, seq)
    evenly = torch.rand(len(starts), n_random, dtype=torch.float64, generator=generator)
    return (evenly * n_keys).long()


def random_mask(
    seq: int, random_keys: Int[Tensor, "blocks random"], *, block: int, causal: bool = False
) -> Bool[Tensor, "seq seq"]:
    """True where `draw_random_keys` has drawn the key for the query's block.

    seq, random_keys (blocks, random) -> (query, key). Causal, no key in the query's future.

    Source:
        Zaheer et al. 2020 (BigBird), §2.

    Example:
        >>> import torch
        >>> from attention import random_mask
        >>> random_mask(3, torch.tensor([[2], [0]]), block=2).int()
        tensor([[0, 0, 1],
                [0, 0, 1],
                [1, 0, 0]], dtype=torch.int32)
    """
    check_size("seq", seq)
    check_size("block", block)
    drawn = torch.zeros(len(random_keys), seq, dtype=torch.bool).scatter(1, random_keys, True)
    mask = drawn.repeat_interleave(block, dim=0)[:seq]
    return mask.tril() if causal else mask
