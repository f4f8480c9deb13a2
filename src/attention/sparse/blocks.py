"""Attention in blocks: each block of neighbouring queries attends to its own list of keys.

A sparse pattern saves time only where the few keys of a query can be fetched and multiplied as one
dense product. Neighbouring queries attend to nearly the same keys. So the queries are cut into
blocks, the keys that any query of a block may see are gathered, and the fused kernel attends within
each block under a small mask: n/block products of block × n_keys scores take the place of n × n.
The result is exact, as long as the list holds every key that the pattern allows.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import require_padding_mask, require_same_sequences, require_vectors
from attention.dot_product import fused_attention


def require_self_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, mechanism: str
) -> None:
    """Refuse what is not self-attention: as many queries as keys, and only padding masked."""
    require_vectors("query", query, "batch heads query d_key")
    require_vectors("key", key, "batch heads key d_key", last=query.shape[-1])
    require_vectors("value", value, "batch heads key d_value")
    require_same_sequences(query, key, value)
    if query.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"{mechanism} is self-attention: its pattern says how far a key lies from its query in "
            f"one sequence; got {query.shape[-2]} queries and {key.shape[-2]} keys. Between two "
            "sequences use scaled_dot_product_attention"
        )
    if mask is not None:
        require_padding_mask(mask, (*query.shape[:-1], key.shape[-2]), mechanism)


NUMBERS_AT_ONCE = 2**20  # 4 MB in float32


def how_many_at_once(blocks: int, numbers: int, x: Tensor) -> int:
    """How many of these blocks are computed together, where each makes so many numbers.

    On a CPU the system hands out memory of tens of megabytes anew for every tensor, and clearing it
    takes as long as the arithmetic. What few blocks need is used again by the next few and stays in
    the processor's cache. With gradients all of it is kept for the way back, and an accelerator
    keeps its memory and is quickest with all blocks at once: then there is one piece.
    """
    if torch.is_grad_enabled() or not x.is_cpu:
        return blocks
    return max(1, NUMBERS_AT_ONCE // numbers)


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
            that a block lists twice counts twice: allow it once. Queries after the last, which fill
            up the last block, are cut off.
        mask: which keys are no padding, (batch, 1, 1, seq), or None. A query that may attend to
            nothing gets output 0.

    Returns:
        The output, (batch, heads, seq, d_value).

    Cost:
        O(seq · n_keys · d_key) time. O(seq · (n_keys + d_key)) memory, the first for `allowed`;
        with gradients, and on an accelerator, O(seq · n_keys · (1 + d_key / block)).

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
    batch, heads, seq, _ = query.shape
    blocks, block, n_keys = allowed.shape
    spare = blocks * block - seq
    query = F.pad(query, (0, 0, 0, spare)) if spare else query
    key, value = key.contiguous(), value.contiguous()  # else index_select copies them in each piece
    if mask is not None:
        mask = mask.expand(*(1,) * (4 - mask.ndim), *mask.shape[:-1], seq)

    def in_blocks(
        x: Tensor, blocks: int
    ) -> Tensor:  # they join the batch: (batch·blocks, heads, …)
        return x.unflatten(2, (blocks, -1)).transpose(1, 2).flatten(0, 1)

    of_a_key = key.shape[-1] + value.shape[-1] + block  # numbers: fetched, and what the mask has
    at_once = how_many_at_once(blocks, batch * heads * n_keys * of_a_key, query)
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
        output = fused_attention(queries, k, v, may_attend)
        outputs.append(output.transpose(1, 2).reshape(batch, few * block, heads, -1))
    return torch.cat(outputs, dim=1)[:, :seq].transpose(1, 2)
