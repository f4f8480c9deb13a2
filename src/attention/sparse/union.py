"""Sparse attention: a sliding window, global tokens, random keys, and any union of them.

Scaled dot-product attention compares every query with every key. Here a query attends to its
neighbours (the window), to a few tokens that all tokens see and that see all tokens (global), and
to a few keys drawn at random. The window alone reaches far through several layers, a global token
connects any two tokens in two steps, and random keys shorten the paths between all others. The
softmax is exact over the keys that are left: the output equals dense attention under the pattern's
mask. Time and memory grow with n times the number of keys that a query sees.

Longformer is the union of window and global tokens; BigBird has random keys as well.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention.arguments import require_size
from attention.fused import attend_fused
from attention.sparse.blocks import attend_gathered, require_self_attention
from attention.sparse.global_tokens import require_global_tokens
from attention.sparse.random_keys import require_random_keys
from attention.sparse.window import window_reach


def sparse_attention(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    window: int | None = None,
    global_tokens: Iterable[int] = (),
    random_keys: Int[Tensor, "blocks random"] | None = None,
    causal: bool = False,
    block: int = 128,
) -> Float[Tensor, "batch heads seq d_value"]:
    """Attend to the union of a sliding window, global tokens and random keys, whichever are given.

    The output equals attention under the masks `sliding_window_mask(seq, window)`,
    `global_mask(seq, global_tokens)` and `random_mask(seq, random_keys, block=block)`, joined by
    `|`.

    Longformer gives the rows of the global tokens projections of their own, W_q, W_k and W_v, and
    gives some heads a window with gaps (dilation). Here all rows come from the same query, key and
    value, and all heads have the same window without gaps. For other projections, compute the rows
    of the global tokens with `fused_attention` and write them into the output with `index_copy`.

    Args:
        query: (batch, heads, seq, d_key).
        key: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        mask: which keys are not padding, (batch, 1, 1, seq) as `padding_mask` makes it. A query
            that may attend to nothing gets output 0.
        window: how many neighbours, half on each side; where causal, all of them before the query.
        global_tokens: positions of the tokens that attend to all tokens and that all tokens attend
            to.
        random_keys: (blocks, random) as `draw_random_keys` makes them, with the same block.
        causal: whether the keys after a query are hidden from it, in all of the three parts.
        block: how many neighbouring queries are computed together. It changes the cost, and which
            queries share their random keys.

    Returns:
        The output, one vector for each query.

    Raises:
        ValueError: if no part is given, and for an odd window, positions outside the sequence,
            random keys of another shape or block, different numbers of queries and keys, and a mask
            that differs between queries.

    Cost:
        With k = window + global + random + block listed keys, O(n · k · d_key) time and O(n · k ·
        (1 + d_key / block)) memory.
        torch.export takes one length at a time: how many blocks are computed follows from it.

    Source:
        Beltagy et al. 2020 (Longformer), §3.1, for window and global tokens; Zaheer et al. 2020
        (BigBird), §2, for all three.

    Example:
        >>> import torch
        >>> from attention import fused_attention, sparse_attention
        >>> from attention import global_mask, sliding_window_mask
        >>> x = torch.randn(1, 2, 300, 8)
        >>> longformer = sliding_window_mask(300, 32) | global_mask(300, [0])
        >>> output = sparse_attention(x, x, x, window=32, global_tokens=[0])
        >>> torch.allclose(output, fused_attention(x, x, x, longformer), atol=1e-5)
        True
    """
    require_self_attention(query, key, value, mask, "sparse attention")
    require_size("block", block)
    seq, device = query.shape[-2], query.device
    global_tokens = require_global_tokens(global_tokens, seq)
    if window is None and not global_tokens and random_keys is None:
        raise ValueError("no query attends to anything: give window, global_tokens or random_keys")

    block = min(block, seq)
    start = torch.arange(0, seq, block, device=device)[:, None]  # (blocks, 1)
    position = (start + torch.arange(block, device=device))[..., None]  # (blocks, block, 1)
    # Without a window nothing is near: no key lies both after and before its query.
    before, after = (-1, -1) if window is None else window_reach(window, causal=causal)

    def near(listed: Tensor) -> Tensor:
        return (listed >= position - before) & (listed <= position + after)

    # Each part lists its keys, (blocks, n_part), and allows those that no earlier part allows.
    listed, allowed = [], []
    if window is not None:
        reach = torch.arange(-min(before, seq), block + min(after, seq), device=device)
        keys = start + reach
        inside = (keys >= 0) & (keys < seq)
        listed.append(keys.clamp(0, seq - 1))
        allowed.append(near(keys[:, None]) & inside[:, None])
    if global_tokens:
        keys = torch.tensor(global_tokens, device=device).expand(len(start), -1)
        listed.append(keys)
        allowed.append(~near(keys[:, None]))
    if random_keys is not None:
        require_random_keys(random_keys, seq, block)
        is_global = torch.zeros(seq, dtype=torch.bool, device=device)
        is_global[global_tokens] = True
        # Compare each drawn key with those drawn before it: (blocks, random, random).
        again = (random_keys[:, :, None] == random_keys[:, None]).tril(-1).any(-1)
        listed.append(random_keys)
        allowed.append(~near(random_keys[:, None]) & ~(is_global[random_keys] | again)[:, None])
    listed, allowed = torch.cat(listed, dim=1), torch.cat(allowed, dim=2)
    if causal:
        allowed &= listed[:, None] <= position
    output = attend_gathered(query, key, value, listed, allowed, mask)
    if not global_tokens:
        return output

    # The few global queries attend to all keys, in a dense product of their own.
    rows = torch.tensor(global_tokens, device=device)
    if causal:
        past = rows[:, None] >= torch.arange(seq, device=device)
        mask = past if mask is None else past & mask
    full = attend_fused(query.index_select(2, rows), key, value, mask)
    return output.index_copy(2, rows, full)
