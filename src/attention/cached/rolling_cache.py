"""The rolling cache: the first tokens and the newest ones, in memory that does not grow.

Under `sink_mask` a token sees the window before it and the first few tokens, the attention sinks.
So a decoder keeps the keys and values of these tokens, and drops all others.
"""

import functools
import inspect

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attention.arguments import require_float_dtype, require_size
from attention.cached.key_value_cache import KeyValueCache, require_new_tokens


class RollingCache:
    """The keys and values of one layer that a new token sees under `sink_mask`, and no others.

    The first n_sinks tokens stay. After them, each new token replaces the oldest of the window + 1
    that came before it, in a ring, so nothing is moved, and nothing is allocated after the start.
    The keys are therefore in no particular order, and attention does not mind, because a sum over
    keys is the same in any order. Positions are either in the keys or nowhere.

    A `MultiHeadAttention` takes it where it takes a `KeyValueCache`. Writing token by token with a
    rolling cache in each layer equals the pass over the whole text under `sink_mask`, with the same
    number of sinks and the same window. A token that a layer has dropped still has an effect where
    a kept key has read it a layer below.

    With `Rotary` a layer keeps its keys turned, each by its position in the text. StreamingLLM
    counts positions in the cache, so that no distance grows beyond what training had. To do the
    same, write the keys unturned, bring those that `append` returns into the order of their tokens,
    `keys[:, :, cache.positions.argsort()]`, do the same with the values, and then turn the keys
    with the query, at every step, because `Rotary` counts them in the order in which it gets them.

    Args:
        batch: how many sequences are decoded side by side.
        n_kv_heads: how many heads of keys and values; query heads do not count.
        window: how many keys a token sees besides its own and the sinks, all of them before it.
        n_sinks: how many of the first tokens stay; may be 0.
        d_key: the width of a head.
        dtype, device: those of the keys and values; torch's defaults unless given.

    Attributes:
        length: how many tokens were written. At most n_sinks + window + 1 of them are held.
        nbytes: the bytes allocated, 2 · batch · n_kv_heads · (n_sinks + window + 1) · d_key ·
            (bytes per number), however many tokens were written.

    Source:
        Xiao et al. 2023 (StreamingLLM), §3.2.

    Example:
        >>> import torch
        >>> from attention import RollingCache
        >>> cache = RollingCache(batch=1, n_kv_heads=2, window=3, n_sinks=1, d_key=4)
        >>> for token in torch.randn(10, 1, 2, 1, 4):
        ...     keys, values = cache.append(token, token)
        >>> cache.length, keys.shape, cache.positions
        (10, torch.Size([1, 2, 5, 4]), tensor([0, 9, 6, 7, 8]))
    """

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        window: int,
        n_sinks: int,
        d_key: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        require_size("batch", batch)
        require_size("n_kv_heads", n_kv_heads)
        require_size("window", window, least=0)
        require_size("n_sinks", n_sinks, least=0)
        require_size("d_key", d_key)
        require_float_dtype(dtype)
        self.window, self.n_sinks, self.length = window, n_sinks, 0
        shape = (batch, n_kv_heads, n_sinks + window + 1, d_key)
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes

    @property
    def positions(self) -> Int64[Tensor, " held"]:
        """The position in the text of each token whose key is held, in the order of the keys."""
        slot = torch.arange(min(self.length, self.keys.shape[2]), device=self.keys.device)
        newest = self.length - 1
        return torch.where(slot < self.n_sinks, slot, newest - (newest - slot) % (self.window + 1))

    def append(
        self,
        key: Float[Tensor, "batch kv_heads new d_key"],
        value: Float[Tensor, "batch kv_heads new d_key"],
    ) -> tuple[
        Float[Tensor, "batch kv_heads held d_key"], Float[Tensor, "batch kv_heads held d_key"]
    ]:
        """Write the key and value of a new token, and return those that it may see.

        Several tokens at once are taken as long as none has to be dropped for them. They see what
        is returned under a causal mask, as with a `KeyValueCache`. Once tokens have to be dropped,
        the second new token would replace a key that the first still sees.

        Args:
            key: (batch, kv_heads, new, d_key).
            value: (batch, kv_heads, new, d_key).

        Returns:
            The keys and the values held, (batch, kv_heads, held, d_key), the new ones among them,
            as views of the cache. The next call overwrites them, so use or copy them before it.

        Raises:
            ValueError: for several tokens at once where one has to be dropped, for another batch,
                number of heads or width, and for keys that need gradients, as
                `KeyValueCache.append` does.
            TypeError: for another dtype.

        Cost:
            O(new · kv_heads · d_key), at any length of the text.
        """
        require_new_tokens(key, value, self.keys)
        n_new, size = key.shape[2], self.keys.shape[2]
        if n_new > 1 and self.length + n_new > size:
            raise ValueError(
                f"{n_new} tokens at once do not fit after {self.length} in a cache of n_sinks + "
                f"window + 1 = {size}: a later one would replace a key that an earlier one still "
                "sees; from there on append one token at a time"
            )
        # While there is room, a token's slot is its position; after that it goes round the ring.
        start = self.length
        if start >= size:
            start = self.n_sinks + (start - self.n_sinks) % (self.window + 1)
        self.keys[:, :, start : start + n_new] = key
        self.values[:, :, start : start + n_new] = value
        self.length += n_new
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]


def require_cache(
    cache: KeyValueCache | RollingCache,
    attend: nn.Module,
    key: Tensor | None,
    value: Tensor | None,
    mask: Tensor | None,
) -> None:
    """Require a cache that `attend` can take along with these arguments of a layer."""
    if not isinstance(cache, KeyValueCache | RollingCache):
        raise TypeError(
            "cache must be a KeyValueCache, a RollingCache or None, got "
            f"{type(cache).__name__}; new_cache(batch, max_length) makes a KeyValueCache"
        )
    require_keeps(attend)
    if isinstance(cache, RollingCache) and mask is not None:
        raise ValueError(
            "a RollingCache takes no mask: it drops tokens and keeps its keys in no order, so "
            "a mask's columns would hide the wrong keys; call without mask, with "
            "causal=True for several tokens, or with a KeyValueCache"
        )
    if not (key is None and value is None):
        raise ValueError(
            "a cache is for self-attention, where each step adds keys, got key or value too; "
            "in cross-attention the keys stay the same: call without cache"
        )


def require_keeps(attend: nn.Module) -> None:
    """Require a module whose forward has an argument `cache`, and the same of what it wraps."""
    attend = getattr(attend, "_orig_mod", attend)  # compiled
    if not takes_cache(type(attend)):
        raise ValueError(
            f"{type(attend).__name__} takes no cache of keys and values; call without cache, or "
            "with an attend that takes one, such as DotProduct"
        )
    if (inside := getattr(attend, "attend", None)) is not None:
        require_keeps(inside)


@functools.cache
def takes_cache(kind: type[nn.Module]) -> bool:
    return "cache" in inspect.signature(kind.forward).parameters
