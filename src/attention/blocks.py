"""Attention in blocks: each block of neighbouring queries attends to its own list of keys.

A sparse pattern saves time only where the few keys of a query can be fetched and multiplied as one
dense product. Neighbouring queries attend to nearly the same keys. So the queries are cut into
blocks, the keys that any query of a block may see are gathered, and the fused kernel attends within
each block under a small mask: n/block products of block × n_keys scores take the place of n × n.
The result is exact, as long as the list holds every key that the pattern allows.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import check_padding_mask, check_same_sequences, check_vectors
from attention.dot_product import fused_attention


def check_one_sequence(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, mechanism: str
) -> None:
    """Refuse what is not self-attention: as many queries as keys, and only padding masked."""
    check_vectors("query", query, "batch heads query d_key")
    check_vectors("key", key, "batch heads key d_key", last=query.shape[-1])
    check_vectors("value", value, "batch heads key d_value")
    check_same_sequences(query, key, value)
    if query.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"{mechanism} is self-attention: its pattern says how far a key lies from its query in "
            f"one sequence; got {query.shape[-2]} queries and {key.shape[-2]} keys. Between two "
            "sequences use scaled_dot_product_attention"
        )
    if mask is not None:
        check_padding_mask(mask, (*query.shape[:-1], key.shape[-2]), mechanism)


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
        O(seq · n_keys · d_key) time; O(seq · n_keys · (1 + d_key / block)) memory.

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

    def gather(x: Tensor) -> Tensor:
        rows = x.transpose(1, 2).index_select(1, listed.flatten())
        return rows.reshape(batch * blocks, n_keys, heads, -1).transpose(1, 2)

    # Blocks join the batch axis: (batch·blocks, heads, block, d_key).
    spare = blocks * block - seq
    queries = (F.pad(query, (0, 0, 0, spare)) if spare else query).transpose(1, 2)
    queries = queries.reshape(batch * blocks, block, heads, -1).transpose(1, 2)
    may_attend = allowed[None, :, None]  # (1, blocks, 1, block, n_keys)
    if mask is not None:
        unpadded = mask.expand(*(1,) * (4 - mask.ndim), *mask.shape[:-1], seq)[..., listed]
        may_attend = may_attend & unpadded.permute(0, 3, 1, 2, 4)  # (batch, blocks, heads, 1, …)
    may_attend = may_attend.expand(batch, *may_attend.shape[1:]).flatten(0, 1)

    output = fused_attention(queries, gather(key), gather(value), may_attend)
    return (
        output.transpose(1, 2).reshape(batch, -1, heads, value.shape[-1])[:, :seq].transpose(1, 2)
    )
