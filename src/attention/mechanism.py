"""Other ways to attend: any function of q, k, v and mask, and a gate around each head.

`MultiHeadAttention` projects, splits, calls its `attend`, merges and projects again. What attends
is a module with the contract of `DotProduct.forward`: it gets q, k and v after the split, a mask,
and whether the future is to be hidden; it returns each head's result, and the weights or None.
"""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import require_module, require_shape, require_vector
from attention.cached.key_value_cache import KeyValueCache
from attention.cached.rolling_cache import RollingCache, require_keeps
from attention.dot_product import transformed
from attention.heads import for_each_head


class Mechanism(nn.Module):
    """A function of q, k, v and mask instead of scaled dot-product attention.

    No attention weights are made.

    Args:
        function: maps q, k, v (batch, heads, query or key, d_key) and a mask or None to each head's
            result (batch, heads, query, d_key), as the functions of this package do.
        hides_future: whether the function hides the future by itself, as
            `partial(linear_attention, causal=True)` does. If it does not, causal=True is refused.
        transform: as for `DotProduct`.

    Example:
        >>> from functools import partial
        >>> import torch
        >>> from attention import EncoderLayer, Mechanism, sparse_attention
        >>> layer = EncoderLayer(d_model=8, n_heads=2, d_ff=32)
        >>> layer.self_attention.attend = Mechanism(partial(sparse_attention, window=16))
        >>> output, weights = layer(torch.randn(1, 100, 8))
        >>> output.shape, weights
        (torch.Size([1, 100, 8]), None)
    """

    def __init__(
        self,
        function: Callable[..., Tensor],
        *,
        hides_future: bool = False,
        transform: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if not callable(function):
            kind = type(function).__name__
            raise TypeError(f"function must be a function of q, k, v and mask, got {kind}")
        if transform is not None:
            require_module("transform", transform)
        self.function, self.hides_future, self.transform = function, hides_future, transform

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        v: Float[Tensor, "batch kv_heads key d_value"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch heads query d_value"], None]:
        """Attend in every head, as `DotProduct.forward` does; the weights are None.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key); the function gets a copy for each query head.
            v: (batch, kv_heads, key, d_value).
            mask: as in `DotProduct.forward`, where the function takes such masks.
            causal: whether the future must be hidden.
            need_weights: changes nothing, because no weights are made.

        Raises:
            ValueError: causal=True, for a function that does not hide the future.
        """
        if causal and not self.hides_future:
            raise ValueError(
                "causal=True asks for a hidden future, and this mechanism does not hide it; give "
                "a function that does, as Mechanism(partial(linear_attention, causal=True), "
                "hides_future=True)"
            )
        q, k = transformed(self.transform, q, k)
        k, v = for_each_head(k, q.shape[1]), for_each_head(v, q.shape[1])
        return self.function(q, k, v, mask), None

    def extra_repr(self) -> str:
        function = getattr(self.function, "func", self.function)  # of a partial
        name = getattr(function, "__name__", type(function).__name__)
        return f"{name}, hides_future={self.hides_future}"


class HeadGate(nn.Module):
    """A factor on each head's result, around any module that attends; 0 switches a head off.

    The weights that a head returns stay as they are. The gradient of the gate says how much the
    loss depends on each head.

    Buffer by name: `gate` (heads). No state_dict holds it, so give another one after `to_empty`.

    Args:
        attend: what attends.
        gate: (heads,).

    Source:
        Michel et al. 2019, "Masking Attention Heads".

    Example:
        >>> import torch
        >>> from attention import HeadGate, MultiHeadAttention
        >>> attention, x = MultiHeadAttention(d_model=8, n_heads=2), torch.randn(1, 5, 8)
        >>> attention.attend = HeadGate(attention.attend, torch.zeros(2))  # both off
        >>> torch.allclose(attention(x)[0], attention.w_o.bias)
        True
    """

    gate: Tensor

    def __init__(self, attend: nn.Module, gate: Float[Tensor, " heads"]) -> None:
        super().__init__()
        require_module("attend", attend)
        require_vector("gate", gate, "heads")
        self.attend = attend
        self.register_buffer("gate", gate, persistent=False)

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        v: Float[Tensor, "batch kv_heads key d_value"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: KeyValueCache | RollingCache | None = None,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch heads query d_value"], Float[Tensor, "batch heads query _"] | None
    ]:
        """Attend as the module inside does, and multiply each head's result by its gate.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key).
            v: (batch, kv_heads, key, d_value).
            mask: as for `attend`.
            causal: as for `attend`.
            cache: as for `attend`, if that takes one.
            need_weights: as for `attend`.

        Raises:
            ValueError: the gate does not have one number for each head, or `attend` takes no cache.
        """
        require_shape("gate", self.gate, (q.shape[1],), "heads")
        options = {"causal": causal, "need_weights": need_weights}
        if cache is not None:
            require_keeps(self.attend)
            options["cache"] = cache
        attended, weights = self.attend(q, k, v, mask, **options)
        return attended * self.gate.to(attended.dtype)[:, None, None], weights
