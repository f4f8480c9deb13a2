"""Multi-head latent attention: keys and values of all heads from one narrow row per token.

Grouped-query attention makes the key-value cache smaller by having fewer keys and values. Here
every head has its own, and a token's keys and values in all heads are made from one latent row of
d_latent numbers, which is all that the cache keeps.

Each head's key is a matrix times the latent row, and so is its value. A score is then the query
times that matrix times the row: multiply the matrix into the query instead, and the query meets
the latent rows themselves. Sum latent rows with the weights, and multiply by the values' matrix
once, after the sum. This is the absorbed form. It gives the same numbers and makes neither keys
nor values: it is multi-query attention with one key of d_latent numbers for each token, which is
its value too. It saves memory and the reading of it, not multiplications: a pair of query and key
takes d_latent of them in each head, twice, where it took d_key.

Left out of the paper's layer are the compression of queries, which saves memory in training and
none in the cache; the norm of the latent rows (its §3.1.2); heads that together are wider than
d_model; and the decoupled rotary key, a few numbers more per token that all heads share.
The model needs these because `Rotary` would stand between a query and the keys' matrix, turning
each pair by its distance, so that the matrix could not move over. Here order must come from the
rows that the layer is given, as with `LearnedPositions` or `SinusoidalPositionalEncoding`.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import (
    require_float_dtype,
    require_mask,
    require_n_heads,
    require_sequences,
    require_size,
    require_vectors,
)
from attention.cached.grouped_query import attend_in_groups
from attention.heads import merge, split


class LatentCache:
    """The latent rows of one layer, in memory that is allocated once for max_length tokens.

    Args:
        batch: how many sequences are decoded side by side.
        max_length: how many tokens fit.
        d_latent: the width of a latent row; heads do not count.
        dtype, device: what the rows have; torch's defaults unless given.

    Attributes:
        length: how many tokens are held.
        nbytes: the bytes allocated, batch · max_length · d_latent · (bytes per number).

    Source:
        Liu et al. 2024, §2.1.2 and table 1.

    Example:
        >>> import torch
        >>> from attention import KeyValueCache, LatentCache
        >>> cache = LatentCache(batch=1, max_length=16, d_latent=8)
        >>> cache.append(torch.randn(1, 3, 8)).shape, cache.length
        (torch.Size([1, 3, 8]), 3)
        >>> KeyValueCache(batch=1, n_kv_heads=4, max_length=16, d_key=16).nbytes // cache.nbytes
        16
    """

    def __init__(
        self,
        batch: int,
        max_length: int,
        d_latent: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        sizes = {"batch": batch, "max_length": max_length, "d_latent": d_latent}
        for name, size in sizes.items():
            require_size(name, size)
        require_float_dtype(dtype)
        self.max_length, self.length = max_length, 0
        self.latents = torch.zeros(*sizes.values(), dtype=dtype, device=device)

    @property
    def nbytes(self) -> int:
        return self.latents.nbytes

    def append(
        self, latent: Float[Tensor, "batch new d_latent"]
    ) -> Float[Tensor, "batch length d_latent"]:
        """Write the latent rows of new tokens behind the others, and return all of them.

        Args:
            latent: (batch, new, d_latent).

        Returns:
            All latent rows, as a view of the cache; only the new ones are copied.

        Raises:
            ValueError: for tokens that do not fit, for another batch or width, and for rows that
                need gradients, since the cache overwrites what these would need.
            TypeError: for another dtype.

        Cost:
            O(new · d_latent).
        """
        require_vectors("latent", latent, "batch new d_latent")
        batch, _, d_latent = self.latents.shape
        expected = (batch, latent.shape[1], d_latent)
        if latent.shape != expected:
            raise ValueError(
                f"latent has shape (batch, new, d_latent) = {tuple(latent.shape)}, and this cache "
                f"takes {expected}; a cache belongs to one layer and one batch, so make another "
                "for these"
            )
        if latent.dtype != self.latents.dtype:
            raise TypeError(
                f"latent is {latent.dtype}, and this cache holds {self.latents.dtype}; "
                f"make it with dtype={latent.dtype}"
            )
        if latent.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                "latent asks for gradients, which a cache cannot give; decode inside "
                "torch.no_grad(), and train without a cache, on the whole sequence"
            )
        start, stop = self.length, self.length + latent.shape[1]
        if stop > self.max_length:
            raise ValueError(
                f"the cache holds {start} of max_length={self.max_length} tokens, and "
                f"{stop - start} more do not fit; make it with max_length={stop} or more"
            )
        self.latents[:, start:stop] = latent
        self.length = stop
        return self.latents[:, :stop]


class LatentAttention(nn.Module):
    """Self-attention with keys and values from latent rows; absorbed where there is a cache.

    Parameters by name: `w_q` and `w_o` (d_model, d_model), each with `.weight` and `.bias`;
    `w_down` (d_latent, d_model), which makes the latent rows, and `w_k` and `w_v` (d_model,
    d_latent), which make keys and values of them, each with `.weight` alone. A bias there would be
    without effect. In the keys, or in the rows that they are made of, it moves all scores of a
    query by the same, and softmax takes that out. In the values it comes out of a weighted sum as
    it went in, which is what the bias of w_o does.

    Without a cache the layer is `MultiHeadAttention` whose matrices for keys and values are w_k ·
    w_down and w_v · w_down, of rank d_latent at most.

    Args:
        d_model, n_heads: as in `MultiHeadAttention`.
        d_latent: the width of a token's latent row. Below 2 · n_kv_heads · d_key it is a smaller
            cache than that of grouped-query attention.
        bias: whether w_q and w_o add a bias.

    Source:
        Liu et al. 2024, §2.1.1 and §2.1.2, equations 9 to 11, and appendix C.

    Example:
        >>> import torch
        >>> from attention import LatentAttention
        >>> attention = LatentAttention(d_model=16, n_heads=4, d_latent=6)
        >>> x, cache = torch.randn(1, 3, 16), attention.new_cache(batch=1, max_length=3)
        >>> with torch.no_grad():
        ...     tokens = [attention(x[:, i : i + 1], cache=cache)[0] for i in range(3)]
        >>> torch.allclose(torch.cat(tokens, 1), attention(x, causal=True)[0], atol=1e-6)
        True
    """

    def __init__(self, d_model: int, n_heads: int, d_latent: int, *, bias: bool = True) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
        require_size("d_latent", d_latent)
        self.d_model, self.n_heads, self.d_latent = d_model, n_heads, d_latent
        self.d_key = d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_down = nn.Linear(d_model, d_latent, bias=False)
        self.w_k = nn.Linear(d_latent, d_model, bias=False)
        self.w_v = nn.Linear(d_latent, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: LatentCache | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query _"] | None]:
        """Attend from every token to every token.

        Args:
            query: (batch, query, d_model); keys and values are made of the same tokens.
            mask: as in `MultiHeadAttention.forward`.
            causal: as in `MultiHeadAttention.forward`.
            cache: takes the latent rows of these tokens, which then attend to all that it holds.
                The axis `key` of the weights and of the mask counts all of them. Pass causal=True
                with several tokens; one alone has no future to hide.
            need_weights: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, query, d_model) and weights (batch, heads, query, key).

        Raises:
            ValueError, TypeError: as `MultiHeadAttention.forward` and `LatentCache.append` do. A
                call that is refused leaves the cache as it was.

        Cost:
            Without a cache, O(n · d_model · (d_model + d_latent) + n² · d_model). With one, a
            token takes O(d_model · (d_model + d_latent) + n · n_heads · d_latent) and reads n ·
            d_latent numbers. Where d_latent > d_key, many tokens at once would take fewer
            multiplications through keys and values made anew of what the cache holds: a prompt
            into an empty cache always, beside a long cache more than about d_latent · d_key /
            (d_latent - d_key) tokens. This layer absorbs them all the same.
        """
        if not isinstance(cache, LatentCache | None):
            raise TypeError(
                f"cache must be a LatentCache or None, got {type(cache).__name__}; "
                "new_cache(batch, max_length) makes one"
            )
        require_sequences(self, query, query, query, None)
        if mask is not None:
            n_keys = query.shape[1] + (0 if cache is None else cache.length)
            require_mask(mask, (query.shape[0], self.n_heads, query.shape[1], n_keys))

        q = split(self.w_q(query), self.n_heads)  # (batch, heads, query, d_key)
        latent = self.w_down(query)  # (batch, query, d_latent)
        per_head = (self.n_heads, self.d_key)  # the rows of w_k and of w_v
        if cache is None:
            k = split(self.w_k(latent), self.n_heads)  # (batch, heads, key, d_key)
            v = split(self.w_v(latent), self.n_heads)
        else:
            k = v = cache.append(latent)[:, None]  # (batch, 1, key, d_latent), all heads' own
            # Scores are divided by √d_latent below, and must be by √d_key as without a cache.
            q = q * math.sqrt(self.d_latent / self.d_key)
            q = q @ self.w_k.weight.unflatten(0, per_head)  # (batch, heads, query, d_latent)
        attended, weights = attend_in_groups(
            q, k, v, mask, dropout=0.0, causal=causal, need_weights=need_weights
        )
        if cache is not None:  # (batch, heads, query, d_latent) -> (batch, heads, query, d_key)
            attended = attended @ self.w_v.weight.unflatten(0, per_head).transpose(-2, -1)
        return self.w_o(merge(attended)), weights

    def new_cache(self, batch: int, max_length: int) -> LatentCache:
        """Make an empty cache for this layer, with its width, dtype and device.

        Under autocast it has the dtype that autocast gives to the latent rows.
        """
        device, dtype = self.w_down.weight.device, self.w_down.weight.dtype
        if torch.is_autocast_enabled(device.type):
            dtype = torch.get_autocast_dtype(device.type)
        return LatentCache(batch, max_length, self.d_latent, dtype=dtype, device=device)

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, n_heads={self.n_heads}, d_latent={self.d_latent}"
