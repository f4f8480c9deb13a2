"""Attention in blocks: each block of neighbouring queries attends to its own list of keys.

A sparse pattern saves time only where the few keys of a query can be fetched and multiplied as one
dense product. Neighbouring queries attend to nearly the same keys. So the queries are cut into
blocks, the keys that any query of a block may see are gathered, and the fused kernel attends within
each block under a small mask. Then n/block products of block × n_keys scores replace the n × n
scores. The result is exact, as long as the list holds every key that the pattern allows.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import can_be_read, require_heads, require_padding_mask
from attention.fused import attend_fused


def require_self_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, mechanism: str
) -> None:
    """Require self-attention: as many queries as keys, and a mask that hides only padding."""
    require_heads(query, key, value)
    if query.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"{mechanism} is self-attention: its pattern says how far a key lies from its query in "
            f"one sequence; got {query.shape[-2]} queries and {key.shape[-2]} keys. Between two "
            "sequences use scaled_dot_product_attention"
        )
    if mask is not None:
        require_padding_mask(mask, (*query.shape[:-1], key.shape[-2]), mechanism)


def require_positions(name: str, positions: Tensor, seq: int, way_out: str) -> None:
    """Require positions of `seq` tokens, where their values can be read."""
    if can_be_read(positions):
        least, largest = positions.min().item(), positions.max().item()
        if least < 0 or largest >= seq:
            raise ValueError(
                f"{name} has position {least if least < 0 else largest}, and the positions of "
                f"{seq} tokens go from 0 to {seq - 1}; {way_out}"
            )


def require_blocks(listed: Tensor, allowed: Tensor, seq: int) -> None:
    """Require one row of key positions for each block, and enough blocks to hold all queries."""
    for name, x in (("listed", listed), ("allowed", allowed)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
    if listed.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"listed must hold positions in int64, got {listed.dtype}")
    if allowed.dtype != torch.bool:
        raise TypeError(f"allowed must be boolean, True = may attend, got {allowed.dtype}")
    shapes = f"got listed {tuple(listed.shape)} and allowed {tuple(allowed.shape)}"
    if listed.ndim != 2 or allowed.ndim != 3 or listed.shape != allowed.shape[::2]:
        raise ValueError(
            "listed must have shape (blocks, n_keys) and allowed (blocks, block, n_keys), with the "
            f"same blocks and n_keys; {shapes}"
        )
    blocks, block, _ = allowed.shape
    if blocks * block < seq:
        raise ValueError(
            f"{blocks} blocks of {block} queries hold {blocks * block} of {seq} queries; {shapes}, "
            f"and {seq} queries in blocks of {block} need {math.ceil(seq / max(block, 1))} rows"
        )
    require_positions("listed", listed, seq, "clamp what lies outside and do not allow it")


NUMBERS_AT_ONCE = 2**20  # 4 MB in float32


def how_many_at_once(blocks: int, numbers: int, x: Tensor) -> int:
    """How many of the blocks are computed together, if each makes `numbers` numbers.

    On a CPU the system hands out fresh memory for every tensor of tens of megabytes, and clearing
    it takes as long as the arithmetic. The next few blocks reuse the memory of a few blocks, which
    stays in the processor's cache. With gradients everything is kept for the backward pass, and an
    accelerator is fastest with all blocks at once, so in both cases all blocks are computed
    together.
    """
    if torch.is_grad_enabled() or not x.is_cpu:
        return blocks
    return max(1, NUMBERS_AT_ONCE // max(1, numbers))  # an empty batch has none


def attend_in_blocks(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    listed: Int[Tensor, "blocks n_keys"],
    allowed: Bool[Tensor, "blocks block n_keys"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch heads seq d_value"]:
    """Let every query attend to keys that its block lists; query i belongs to block i // block.

    Args:
        query: (batch, heads, seq, d_key).
        key: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        listed: (blocks, n_keys), the positions of the keys that a block of queries gathers.
        allowed: (blocks, block, n_keys), True where the query may attend to the listed key. A key
            that a block lists twice counts twice, so allow it only once. The blocks must hold all
            queries; rows of the last block that no query fills are ignored.
        mask: which keys are not padding, (batch, 1, 1, seq), or None. A query that may attend to
            nothing gets output 0.

    Returns:
        The output, one vector for each query.

    Raises:
        ValueError: for fewer rows of `allowed` than queries, positions outside the sequence, shapes
            that do not fit, different numbers of queries and keys, and a mask that differs between
            queries.
        TypeError: for positions that are not integers and for an `allowed` that is not boolean.

    Cost:
        O(seq · n_keys · d_key) time. O(seq · (n_keys + d_key)) memory, the first term for
        `allowed`; with gradients, and on an accelerator, O(seq · n_keys · (1 + d_key / block)).
        torch.export takes one length at a time: how many blocks are computed follows from it.

    Source:
        Zaheer et al. 2020 (BigBird), appendix D, for gathering keys block by block.

    Example:
        >>> import torch
        >>> from attention import attend_in_blocks
        >>> value = torch.tensor([[[[1.0], [2], [4], [8]]]])
        >>> listed = torch.tensor([[3], [0]])  # the first two queries see key 3, the others key 0
        >>> allowed = torch.ones(2, 2, 1, dtype=torch.bool)
        >>> attend_in_blocks(value, value, value, listed, allowed).flatten()
        tensor([8., 8., 1., 1.])
    """
    require_self_attention(query, key, value, mask, "attention in blocks")
    require_blocks(listed, allowed, query.shape[-2])
    return attend_gathered(query, key, value, listed, allowed, mask)


def attend_gathered(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    listed: Int[Tensor, "blocks n_keys"],
    allowed: Bool[Tensor, "blocks block n_keys"],
    mask: Bool[Tensor, "..."] | None,
) -> Float[Tensor, "batch heads seq d_value"]:
    """`attend_in_blocks` without its argument checks."""
    batch, heads, seq, _ = query.shape
    blocks, block, n_keys = allowed.shape
    spare = blocks * block - seq
    query = F.pad(query, (0, 0, 0, spare)) if spare else query
    # Made contiguous once here, or index_select would copy all of them for every few blocks.
    key, value = key.contiguous(), value.contiguous()
    if mask is not None:
        mask = mask.expand(*(1,) * (4 - mask.ndim), *mask.shape[:-1], seq)

    def in_blocks(x: Tensor, blocks: int) -> Tensor:  # (batch · blocks, heads, …)
        return x.unflatten(2, (blocks, -1)).transpose(1, 2).flatten(0, 1)

    per_key = key.shape[-1] + value.shape[-1] + block  # numbers: key, value and a column of mask
    at_once = how_many_at_once(blocks, batch * heads * n_keys * per_key, query)
    outputs = []
    for queries, keys, may_attend in zip(
        query.split(at_once * block, dim=2),
        listed.split(at_once),
        allowed[None, :, None].split(at_once, dim=1),  # (1, blocks, 1, block, n_keys)
        strict=True,
    ):
        few = len(keys)
        if mask is not None:
            unpadded = mask[..., keys].permute(0, 3, 1, 2, 4)  # (batch, blocks, heads, 1, n_keys)
            may_attend = may_attend & unpadded
        may_attend = may_attend.expand(batch, *may_attend.shape[1:]).flatten(0, 1)
        queries = in_blocks(queries, few)
        k, v = (in_blocks(x.index_select(2, keys.flatten()), few) for x in (key, value))
        output = attend_fused(queries, k, v, may_attend)
        outputs.append(output.transpose(1, 2).reshape(batch, few * block, heads, value.shape[-1]))
    return torch.cat(outputs, dim=1)[:, :seq].transpose(1, 2)
