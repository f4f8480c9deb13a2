"""Random keys: each block of queries attends to a few keys that are drawn for it (BigBird).

With a sliding window alone, two distant tokens meet only after many layers. A few keys drawn at
random for each block of neighbouring queries shorten nearly all of these paths, at the cost of that
many more scores for each query. Draw the keys once and pass them on: `random_mask` shows them as a
mask, and `sparse_attention` computes with them.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attention.arguments import require_size
from attention.sparse.blocks import require_positions


def draw_random_keys(
    seq: int,
    n_random: int,
    *,
    block: int,
    causal: bool = False,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "blocks {n_random}"]:
    """Draw n_random keys for each block of queries, evenly and with replacement.

    The queries of a block share their keys, so that the keys are fetched once for all of them;
    block=1 draws for each query. A key that is drawn twice, or that already belongs to the window
    or the global tokens, counts once. BigBird's code draws whole blocks of keys, without
    replacement, outside window and global tokens, and separately for each head. Here single keys
    are drawn, and all heads share them.

    Args:
        seq: how many tokens.
        n_random: how many keys are drawn for a block.
        block: how many neighbouring queries make a block.
        causal: whether the keys are drawn only up to the end of the block.
        generator: where the numbers come from; torch's default unless given.

    Returns:
        The keys' positions, (blocks, n_random).

    Source:
        Zaheer et al. 2020 (BigBird), §2 and appendix D.

    Example:
        >>> from attention import draw_random_keys
        >>> draw_random_keys(seq=10, n_random=2, block=4).shape
        torch.Size([3, 2])
    """
    require_size("seq", seq)
    require_size("n_random", n_random)
    require_size("block", block)
    starts = torch.arange(0, seq, block)[:, None]
    n_keys = (starts + block).clamp(max=seq) if causal else torch.full_like(starts, seq)
    evenly = torch.rand(len(starts), n_random, dtype=torch.float64, generator=generator)
    return (evenly * n_keys).long()


def require_random_keys(random_keys: Tensor, seq: int, block: int) -> None:
    """Require keys as `draw_random_keys(seq, …, block=block)` makes them."""
    way_out = f"draw_random_keys({seq}, …, block={block}) makes them"
    if not isinstance(random_keys, Tensor):
        kind = type(random_keys).__name__
        raise TypeError(f"random_keys must be a tensor of positions, got {kind}; {way_out}")
    shape = tuple(random_keys.shape)
    if random_keys.dtype != torch.int64:
        raise TypeError(
            f"random_keys must be int64, got {random_keys.dtype} of shape {shape}; {way_out}"
        )
    if random_keys.ndim != 2:
        raise ValueError(f"random_keys must have shape (blocks, random), got {shape}; {way_out}")
    blocks = -(-seq // block)
    if len(random_keys) != blocks:
        raise ValueError(
            f"random_keys has {len(random_keys)} rows, and {seq} queries in blocks of {block} "
            f"need {blocks}; {way_out}"
        )
    require_positions("random_keys", random_keys, seq, way_out)


def random_mask(
    seq: int, random_keys: Int[Tensor, "blocks random"], *, block: int, causal: bool = False
) -> Bool[Tensor, "seq seq"]:
    """True where the key was drawn for the query's block.

    Args:
        seq: how many tokens.
        random_keys: (blocks, random), as `draw_random_keys` makes them with the same seq and block.
        block: how many neighbouring queries make a block.
        causal: whether keys in the query's future are hidden.

    Returns:
        The mask, (query, key), on the device of random_keys.

    Raises:
        ValueError, TypeError: for random_keys of another shape or type, and for a position outside
            the sequence.

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
    require_size("seq", seq)
    require_size("block", block)
    require_random_keys(random_keys, seq, block)
    drawn = torch.zeros(len(random_keys), seq, dtype=torch.bool, device=random_keys.device)
    mask = drawn.scatter(1, random_keys, True).repeat_interleave(block, dim=0)[:seq]
    return mask.tril() if causal else mask
