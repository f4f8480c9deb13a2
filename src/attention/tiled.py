"""Exact attention in tiles, with a running maximum and sum: softmax without a whole row of scores.

A softmax needs the maximum and the sum of its row. Both can be kept up to date while the row is
read in pieces: at a new maximum, the sum so far is scaled down to it, and so is the weighted sum of
the values. No query × key matrix is ever held, and the output is that of scaled dot-product
attention, up to rounding. For the backward pass each query keeps one number, the log-sum-exp of its
scores, from which every tile's weights are computed again (recomputation). The work is
O(query · key), with 7 products of query × key in training instead of 6, and the memory is
O(query + key).

This is the order of FlashAttention-2 (Dao 2023, §3.1): the outer loop takes the tiles of queries,
each output is divided by its sum once, at the end, and the log-sum-exp is kept.
FlashAttention (Dao et al. 2022) takes the tiles of keys in the outer loop, divides at every tile,
and keeps the maximum and the sum. Both save traffic between an accelerator's memory and its caches;
here the same arithmetic saves memory only.
"""

import math
from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention.arguments import require_heads, require_size


def tiled_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    causal: bool = False,
    tile: int = 256,
) -> Float[Tensor, "batch heads query d_value"]:
    """softmax(query · keyᵀ / √d_key) · value in tiles.

    A query that may attend to nothing gets output 0 and finite gradients. Inputs in float16 and
    bfloat16 are summed in float32. There is no dropout, no gradient of gradients, and no gradient
    through torch.func.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        mask: as in `scaled_dot_product_attention`. A padding mask is small; instead of a causal
            mask, pass causal=True.
        causal: whether the keys in a query's future are hidden, with the last query aligned with
            the last key, as in `causal_mask`. Tiles that lie wholly in the future are skipped,
            which saves half of the work.
        tile: how many queries and how many keys a tile has.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError, TypeError: as `scaled_dot_product_attention` does.

    Cost:
        O(query · key · d_key) operations. O(query + key + tile²) numbers are held in each head. It
        takes up to about twice the time of torch's fused kernel, because here each step on a tile
        is a separate operation that writes its result to memory, whereas the kernel is one loop
        over a tile that stays in the processor's cache.
        torch.export takes one length at a time, because the length determines how many tiles are
        computed.

    Source:
        Milakov and Gimelshein 2018, §3, algorithm 3: softmax; Dao 2023 (FlashAttention-2), §3.1,
        algorithms 1 and 2: output and gradients, after Dao et al. 2022 (FlashAttention), appendix
        B.2.

    Example:
        >>> import torch
        >>> from attention import fused_attention, tiled_attention
        >>> x = torch.randn(1, 2, 50, 8)
        >>> torch.allclose(tiled_attention(x, x, x, tile=16), fused_attention(x, x, x), atol=1e-5)
        True
    """
    require_heads(query, key, value, mask)
    require_size("tile", tile)
    if mask is not None:
        mask = mask.expand(*query.shape[:-1], key.shape[-2])  # a view: it holds no more numbers
    # Autograd differentiates the scaling and the change of type, so that TiledAttention need not.
    exact = torch.promote_types(query.dtype, torch.float32)
    scaled = query.to(exact) * (1 / math.sqrt(query.shape[-1]))
    output, _ = TiledAttention.apply(scaled, key.to(exact), value.to(exact), mask, causal, tile)
    return output.to(query.dtype)


class TiledAttention(torch.autograd.Function):
    """softmax(query · keyᵀ) · value and its gradients, tile by tile.

    Both passes take the tiles of queries in the outer loop. Dao 2023, algorithm 2, takes those of
    keys there in the backward pass, so that they can run in parallel.
    """

    @staticmethod
    def forward(query, key, value, mask, causal, tile):
        output = query.new_zeros(*query.shape[:-1], value.shape[-1])
        log_sum_exp = query.new_zeros(*query.shape[:-1], 1)
        for rows, visible in tiles(query.shape[-2], key.shape[-2], tile, causal):
            # The running sums, of weights and of values times weights, are both still at 0. The
            # second becomes the output in the same memory.
            total, weighted = log_sum_exp[..., rows, :], output[..., rows, :]
            # Not -inf: hidden scores are -inf, and -inf - (-inf) would be NaN.
            maximum = torch.full_like(total, torch.finfo(total.dtype).min)
            for columns in visible:
                scores = scores_of_tile(query, key, mask, causal, rows, columns)
                larger = torch.maximum(maximum, scores.amax(-1, keepdim=True))
                weights = scores.sub_(larger).exp_()  # over the tile's own memory
                # Both sums are relative to the old maximum: make them relative to the new one.
                shrink = (maximum - larger).exp()
                total = total * shrink + weights.sum(-1, keepdim=True)
                weighted.mul_(shrink).add_(weights @ value[..., columns, :])
                maximum = larger
            total = total.masked_fill(total == 0.0, 1.0)  # nothing to attend to: 0 / 1
            weighted.div_(total)
            log_sum_exp[..., rows, :] = maximum + total.log()
        return output, log_sum_exp

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        *tensors, ctx.causal, ctx.tile = inputs
        _, log_sum_exp = outputs
        ctx.save_for_backward(*tensors, *outputs)
        ctx.mark_non_differentiable(log_sum_exp)

    @staticmethod
    def backward(ctx, grad_output, _):
        if torch.is_grad_enabled():  # by create_graph=True, which would treat all this as constant
            raise RuntimeError(
                "tiled_attention has no gradients of gradients, and none through torch.func; "
                "scaled_dot_product_attention has both"
            )
        query, key, value, mask, output, log_sum_exp = ctx.saved_tensors
        grad_query, grad_key, grad_value = (torch.zeros_like(x) for x in (query, key, value))
        # The gradient through softmax is weights · (g - Σ weights · g). The sum over the keys needs
        # no weights: it is the product of the output and its gradient.
        mean = (grad_output * output).sum(-1, keepdim=True)
        for rows, visible in tiles(query.shape[-2], key.shape[-2], ctx.tile, ctx.causal):
            for columns in visible:
                scores = scores_of_tile(query, key, mask, ctx.causal, rows, columns)
                weights = scores.sub_(log_sum_exp[..., rows, :]).exp_()
                grad_weights = grad_output[..., rows, :] @ value[..., columns, :].mT
                grad_scores = grad_weights.sub_(mean[..., rows, :]).mul_(weights)
                grad_value[..., columns, :] += weights.mT @ grad_output[..., rows, :]
                grad_query[..., rows, :] += grad_scores @ key[..., columns, :]
                grad_key[..., columns, :] += grad_scores.mT @ query[..., rows, :]
        return grad_query, grad_key, grad_value, None, None, None


def tiles(
    n_queries: int, n_keys: int, tile: int, causal: bool
) -> Iterator[tuple[slice, list[slice]]]:
    """Yield each tile of queries as a slice, with the slices of keys that it has to visit."""
    for start in range(0, n_queries, tile):
        stop = min(start + tile, n_queries)
        # The last of these queries is at position stop - 1 + n_keys - n_queries among the keys.
        n_visible = stop + n_keys - n_queries if causal else n_keys
        columns = (slice(i, min(i + tile, n_visible)) for i in range(0, n_visible, tile))
        yield slice(start, stop), list(columns)


def scores_of_tile(
    query: Tensor, key: Tensor, mask: Tensor | None, causal: bool, rows: slice, columns: slice
) -> Tensor:
    """Return the scores of one tile, -inf where a query may not attend."""
    scores = query[..., rows, :] @ key[..., columns, :].mT
    if mask is not None:
        scores = scores.masked_fill(~mask[..., rows, columns], -math.inf)
    offset = key.shape[-2] - query.shape[-2]
    if causal and columns.stop - 1 > rows.start + offset:  # else its keys are all in the past
        position = torch.arange(rows.start, rows.stop, device=key.device)[:, None] + offset
        past = torch.arange(columns.start, columns.stop, device=key.device) <= position
        scores = scores.masked_fill(~past, -math.inf)
    return scores
