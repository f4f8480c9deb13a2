"""Compression along the sequence: every `block` tokens leave one entry, and a window stays whole.

`Linformer` mixes all keys, including those of the future, before any score is made, so it cannot
hide the future. Here only neighbouring tokens are mixed, and a query sees their entry once the last
of them has arrived. So the model can write, and its cache has n / block entries and one window.

DeepSeek-V4 stacks two kinds of this. With blocks of 128 tokens every query sees all entries
(heavily compressed attention). With blocks of 4 an indexer chooses the best entries for each query
(compressed sparse attention); there an entry mixes its own four tokens and the four before them. In
both kinds the keys are the values, one head of them serves all query heads, the window has
projections of its own, queries and entries are normalised and partly turned by position, and each
head has a learned sink. None of this is done here, and neither is the overlap. The rule that the
last token of a block sees its entry is that of the released code.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    require_dtype,
    require_dtype_of,
    require_size,
    require_vectors,
)
from attention.dot_product import masked_softmax, scaled_scores
from attention.heads import for_each_head
from attention.masks import kept_keys
from attention.sparse.blocks import how_many_at_once, require_self_attention
from attention.sparse.selection import require_selected


def require_gate(gate: Tensor, key: Tensor, value: Tensor) -> None:
    """Require a score for each token and number, or one for all numbers of a token."""
    require_vectors("gate", gate, "batch heads seq d_gate")
    require_dtype("gate", gate, "key", key.dtype)
    widths = key.shape[-1], value.shape[-1]
    fits = gate.shape[-1] == 1 or gate.shape[-1] == widths[0] == widths[1]
    if gate.shape[:3] != key.shape[:3] or not fits:
        raise ValueError(
            f"gate must have shape (batch, heads, seq, d_gate) = {tuple(key.shape[:3])} and d_gate "
            f"1, or the width of keys and values where that is one (here {widths[0]} and "
            f"{widths[1]}), got {tuple(gate.shape)}"
        )


def compressed_attention(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    gate: Float[Tensor, "batch heads seq d_gate"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    block: int,
    window: int,
    selected: Int[Tensor, "batch #heads seq n_selected"] | None = None,
) -> Float[Tensor, "batch heads seq d_value"]:
    """Attend to the last tokens as they are, and to one entry for each earlier block.

    The softmax of the gates over the `block` tokens of a block weighs their keys and their values,
    number by number, and the two weighted sums are the block's entry. Query t sees the entries of
    the blocks whose last token is t or an earlier token, itself and the `window` tokens before it,
    all in one softmax. A token of the window can also be part of an entry. The future is hidden.

    Args:
        query: (batch, heads, seq, d_key).
        key: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        gate: (batch, heads, seq, d_gate); d_gate is 1, or d_key where that equals d_value.
        mask: which keys are not padding, (batch, 1, 1, seq) as `padding_mask` makes it. Padding on
            the left moves the blocks; if it moves them by a multiple of `block`, it changes
            nothing.
        block: how many tokens an entry stands for. Tokens after the last full block have none.
        window: how many of the tokens before it a query sees as they are, besides itself. With
            fewer than block - 2, a token can leave the window before its block is over, and it is
            then hidden from every query until the block is over.
        selected: (batch, heads, seq, n_selected), the blocks whose entries a query sees, as for
            `selected_attention`; blocks that are not over at the query are hidden, and a block that
            is listed twice counts twice. All blocks, unless given.

    Returns:
        The output, (batch, heads, seq, d_value).

    Raises:
        ValueError: for different numbers of queries and keys, gates or numbers of blocks that do
            not fit, and a mask that differs between queries.
        TypeError: for numbers of blocks that are not integers.

    Cost:
        O(n · (n / block + window) · d_key) time, which for a fixed block is still quadratic, with a
        factor of 1 / block. With `selected` it is O(n · (n_selected + window) · d_key), and each
        query gathers its own entries. Without gradients a few queries at a time are computed, so
        n × n / block numbers are never held at once.
        torch.export takes one length at a time: how many queries are computed together follows
        from it.

    Source:
        DeepSeek-AI 2026 (DeepSeek-V4), §2.3.1 to §2.3.3.

    Example:
        >>> import torch
        >>> from attention import compressed_attention, fused_attention
        >>> x = torch.randn(1, 2, 300, 8)
        >>> gate = torch.zeros(1, 2, 300, 1)  # an entry is a mean
        >>> compressed_attention(x, x, x, gate, block=16, window=32).shape
        torch.Size([1, 2, 300, 8])
        >>> whole = compressed_attention(x, x, x, gate, block=301, window=299)  # no block is over
        >>> torch.allclose(whole, fused_attention(x, x, x, causal=True), atol=1e-5)
        True
    """
    require_self_attention(query, key, value, mask, "compressed attention")
    require_size("block", block)
    require_size("window", window)
    require_gate(gate, key, value)
    if selected is not None:
        require_selected(selected, query, -(-key.shape[2] // block))
    return attend_compressed(
        query, key, value, gate, mask, block=block, window=window, selected=selected
    )


def attend_compressed(
    query: Float[Tensor, "batch heads seq d_key"],
    key: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    gate: Float[Tensor, "batch heads seq d_gate"],
    mask: Bool[Tensor, "..."] | None,
    *,
    block: int,
    window: int,
    selected: Int[Tensor, "batch #heads seq n_selected"] | None = None,
) -> Float[Tensor, "batch heads seq d_value"]:
    """`compressed_attention` without its argument checks."""
    batch, heads, seq, d_key = query.shape
    window, block = min(window, max(seq, 1)), min(block, seq + 1)  # more of either changes nothing
    kept = kept_keys(key, mask)
    if mask is not None:
        key, value = torch.where(kept, key, 0), torch.where(kept, value, 0)
        gate = gate.masked_fill(~kept, torch.finfo(gate.dtype).min)

    def in_blocks(x: Tensor, size: int) -> Tensor:  # (…, seq, d) -> (…, blocks, size, d)
        return F.pad(x, (0, 0, 0, -seq % size)).unflatten(2, (-1, size))

    share = in_blocks(gate, block).softmax(3)
    entry_keys, entry_values = ((share * in_blocks(x, block)).sum(3) for x in (key, value))
    kept_entries = in_blocks(kept, block).any(3)
    ends = block * torch.arange(1, entry_keys.shape[2] + 1, device=key.device)  # first query after

    # Neighbouring queries, as many as a window has tokens, share one stretch of twice as many
    # tokens, and each query sees its own part of it.
    def stretches(x: Tensor) -> Tensor:  # (…, seq, d) -> (…, stretches, 2 · window, d)
        return F.pad(x, (0, 0, window, -seq % window)).unfold(2, 2 * window, window).mT

    near_keys, near_values, kept_near = map(stretches, (key, value, kept))
    place = torch.arange(2 * window, device=key.device)
    ago = place[window:, None] - place  # (window, 2 · window)
    kept_near = kept_near.mT & (ago >= 0) & (ago <= window)
    queries = in_blocks(query, window)  # (batch, heads, stretches, window, d_key)
    now = torch.arange(queries.shape[2] * window, device=key.device).view(-1, window, 1)
    n_far = entry_keys.shape[2]
    if selected is not None:
        n_far = selected.shape[-1]
        selected = in_blocks(selected.expand(batch, heads, seq, n_far), window)
        kept_entries = kept_entries.expand(batch, heads, -1, 1)
        b = torch.arange(batch, device=key.device).view(-1, 1, 1, 1, 1)
        h = torch.arange(heads, device=key.device).view(-1, 1, 1, 1)

    gathered = 0 if selected is None else n_far * (d_key + value.shape[-1])
    numbers = batch * heads * window * (2 * window + n_far + gathered)
    outputs = []
    at_once = how_many_at_once(len(now), numbers, query)
    for start in range(0, len(now), at_once):
        few = slice(start, start + at_once)
        asks = queries[:, :, few]
        if selected is None:  # (batch, heads, groups, asks, d_key): one group, which sees them all
            groups = asks.flatten(2, 3)[:, :, None]
            far_keys, far_values = entry_keys[:, :, None], entry_values[:, :, None]
            seen_far = kept_entries.mT[:, :, None] & (ends <= now[few] + 1)
        else:  # each query is a group, and sees its own
            groups = asks.flatten(2, 3)[..., None, :]
            chosen = selected[:, :, few]
            far_keys, far_values = (
                x[b, h, chosen].flatten(2, 3) for x in (entry_keys, entry_values)
            )
            seen_far = kept_entries[b, h, chosen].squeeze(-1) & (ends[chosen] <= now[few] + 1)
        near = scaled_scores(asks, near_keys[:, :, few])
        of_groups = scaled_scores(groups, far_keys)
        far = of_groups.view(*asks.shape[:-1], n_far)
        seen = [each.expand_as(x) for each, x in ((kept_near[:, :, few], near), (seen_far, far))]
        weights = masked_softmax(torch.cat((near, far), -1), torch.cat(seen, -1)).to(value.dtype)
        to_near, to_far = weights.split((2 * window, n_far), dim=-1)
        of_entries = to_far.reshape(of_groups.shape) @ far_values
        outputs.append((to_near @ near_values[:, :, few]).flatten(2, 3) + of_entries.flatten(2, 3))
    return torch.cat(outputs, dim=2)[:, :, :seq]


class CompressedAttention(nn.Module):
    """Attends, inside `MultiHeadAttention`, to entries of `block` tokens each and to a window.

    Parameters by name: `w_gate` (d_key, d_key), without bias, which makes the gates of a token from
    its key, and `place` (block, d_key), which is added to them according to the token's position in
    its block. `place` starts as zeros, and all heads share both parameters. DeepSeek-V4 makes the
    gates from the token itself.

    Args:
        d_key: the width of a head.
        block, window: as for `compressed_attention`.

    Raises:
        ValueError: for sizes that do not fit.

    Source:
        DeepSeek-AI 2026 (DeepSeek-V4), §2.3.2.

    Example:
        >>> import torch
        >>> from attention import CompressedAttention, MultiHeadAttention
        >>> attend = CompressedAttention(d_key=4, block=16, window=32)
        >>> output, weights = MultiHeadAttention(8, 2, attend=attend)(torch.zeros(3, 60, 8))
        >>> output.shape, weights
        (torch.Size([3, 60, 8]), None)
    """

    def __init__(self, d_key: int, *, block: int, window: int) -> None:
        super().__init__()
        require_size("d_key", d_key)
        require_size("block", block)
        require_size("window", window)
        self.block, self.window = block, window
        self.w_gate = nn.Linear(d_key, d_key, bias=False)
        self.place = nn.Parameter(torch.zeros(block, d_key))

    def forward(
        self,
        q: Float[Tensor, "batch heads seq d_key"],
        k: Float[Tensor, "batch kv_heads seq d_key"],
        v: Float[Tensor, "batch kv_heads seq d_key"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch heads seq d_key"], None]:
        """Attend in every head, as `DotProduct.forward` does; the weights are None.

        Args:
            q: (batch, heads, seq, d_key).
            k: (batch, kv_heads, seq, d_key), copied for each query head, then compressed.
            v: (batch, kv_heads, seq, d_key).
            mask: which keys are not padding, (batch, 1, 1, seq), as for `compressed_attention`.
            causal: changes nothing: the future is hidden.
            need_weights: changes nothing: no weights are made.

        Raises:
            ValueError, TypeError: as `compressed_attention` does.

        Cost:
            As for `compressed_attention`.
            torch.export takes one length at a time, as for `compressed_attention`.
        """
        require_dtype_of(self, q=q)
        k, v = for_each_head(k, q.shape[1]), for_each_head(v, q.shape[1])
        require_self_attention(q, k, v, mask, "compressed attention")
        place = self.place[torch.arange(k.shape[2], device=k.device) % self.block]
        gate = self.w_gate(k) + place
        return attend_compressed(q, k, v, gate, mask, block=self.block, window=self.window), None

    def extra_repr(self) -> str:
        return f"block={self.block}, window={self.window}"
