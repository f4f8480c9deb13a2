"""The key-value cache: what a decoder keeps, so that each token is projected once.

Under a causal mask the keys and values of earlier tokens never change. So a decoder that writes one
token after another keeps them, and each step projects only the new token, so that the work per
token is O(n) instead of O(n²). The price is memory, which every step reads from end to end. This
memory grows with the number of KV heads, and grouped-query attention has fewer of them for this
reason.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attention.arguments import require_float_dtype, require_size, require_vectors


def require_new_tokens(key: Tensor, value: Tensor, keys: Tensor) -> None:
    """Require keys and values that a cache of such `keys` can take, however many tokens."""
    batch, n_kv_heads, _, d_key = keys.shape
    for name, x in (("key", key), ("value", value)):
        require_vectors(name, x, "batch kv_heads new d_key")
        expected = (batch, n_kv_heads, key.shape[2], d_key)
        if x.shape != expected:
            raise ValueError(
                f"{name} has shape (batch, kv_heads, new, d_key) = {tuple(x.shape)}, and this "
                f"cache takes {expected}; a cache belongs to one layer and one batch, so make "
                "another for these"
            )
        if x.device != keys.device:
            raise ValueError(
                f"{name} is on {x.device}, and this cache on {keys.device}; "
                f"make it with device={str(x.device)!r}"
            )
        if x.dtype != keys.dtype:
            raise TypeError(
                f"{name} is {x.dtype}, and this cache holds {keys.dtype}; "
                f"make it with dtype={x.dtype}"
            )
        if x.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name} asks for gradients, which a cache cannot give; decode inside "
                "torch.no_grad(), and train without a cache, on the whole sequence"
            )


class KeyValueCache:
    """The keys and values of one layer, in memory that is allocated once for max_length tokens.

    Args:
        batch: how many sequences are decoded side by side.
        n_kv_heads: how many heads of keys and values; query heads do not count.
        max_length: how many tokens fit.
        d_key: the width of a head.
        dtype, device: those of the keys and values; torch's defaults unless given.

    Attributes:
        length: how many tokens are held.
        nbytes: the bytes allocated, 2 · batch · n_kv_heads · max_length · d_key · (bytes per
            number). A decoder of several layers has one cache per layer, and so that many times the
            bytes.

    Source:
        Shazeer 2019, §2.4 and §3, for the cost; Ainslie et al. 2023, §1 and §2.2.

    Example:
        >>> import torch
        >>> from attention import KeyValueCache
        >>> cache = KeyValueCache(batch=1, n_kv_heads=2, max_length=16, d_key=4)
        >>> key, value = torch.randn(2, 1, 2, 3, 4)  # three tokens
        >>> keys, values = cache.append(key, value)
        >>> cache.length, keys.shape, bool((keys == key).all())
        (3, torch.Size([1, 2, 3, 4]), True)
        >>> cache.nbytes == 2 * 1 * 2 * 16 * 4 * 4  # float32: 4 bytes each
        True
    """

    def __init__(
        self,
        batch: int,
        n_kv_heads: int,
        max_length: int,
        d_key: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        sizes = {"batch": batch, "n_kv_heads": n_kv_heads, "max_length": max_length, "d_key": d_key}
        for name, size in sizes.items():
            require_size(name, size)
        require_float_dtype(dtype)
        self.max_length, self.length = max_length, 0
        # Growing by torch.cat would copy everything again for each token.
        self.keys = torch.zeros(*sizes.values(), dtype=dtype, device=device)
        self.values = torch.zeros_like(self.keys)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes

    def append(
        self,
        key: Float[Tensor, "batch kv_heads new d_key"],
        value: Float[Tensor, "batch kv_heads new d_key"],
    ) -> tuple[
        Float[Tensor, "batch kv_heads length d_key"], Float[Tensor, "batch kv_heads length d_key"]
    ]:
        """Write the keys and values of new tokens after the others, and return all of them.

        Args:
            key: (batch, kv_heads, new, d_key).
            value: (batch, kv_heads, new, d_key).

        Returns:
            All keys and all values, as views of the cache; only the new tokens are copied.

        Raises:
            ValueError: for tokens that do not fit, for another batch, number of heads or width, and
                for keys that need gradients, since the cache overwrites what those would need.
            TypeError: for another dtype.

        Cost:
            O(new · kv_heads · d_key).
        """
        require_new_tokens(key, value, self.keys)
        start, stop = self.length, self.length + key.shape[2]
        if stop > self.max_length:
            raise ValueError(
                f"the cache holds {start} of max_length={self.max_length} tokens, and "
                f"{stop - start} more do not fit; make it with max_length={stop} or more"
            )
        self.keys[:, :, start:stop] = key
        self.values[:, :, start:stop] = value
        self.length = stop
        return self.keys[:, :, :stop], self.values[:, :, :stop]
