"""Multi-head attention: four projections around a module that attends (chapters 2 and 7)."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import (
    letters_of_bias,
    require_divides,
    require_n_heads,
    require_sequences,
    require_shape,
    require_size,
)
from attention.cached.key_value_cache import KeyValueCache
from attention.cached.rolling_cache import RollingCache, require_cache, require_keeps
from attention.dot_product import DotProduct
from attention.heads import merge, split
from attention.precision import autocast_dtype


class MultiHeadAttention(nn.Module):
    """Several heads attend in parallel, each in its own d_key columns of queries, keys and values.

    Parameters: `w_q` (n_heads · d_key, d_model), `w_k` and `w_v` (n_kv_heads · d_key, d_model) and
    `w_o` (d_model, n_heads · d_key), each an nn.Linear with `.weight`, which it stores transposed,
    and `.bias`.

    Args:
        d_model: the width of a token's vector, in and out.
        n_heads: how many query heads; unless d_key is given, it must divide d_model.
        n_kv_heads: how many heads of keys and values, each shared by n_heads / n_kv_heads
            consecutive query heads. This is grouped-query attention, and with 1 it is multi-query
            attention. The same as n_heads unless given.
        d_key: the width of a head; d_model / n_heads unless given.
        dropout: the probability that `DotProduct` drops an attention weight, in training only.
        bias: whether the projections add a bias, or the letters of those that do: "qkv" in Qwen2.
        attend: what each head does with its q, k and v; a `DotProduct` unless given. It may be a
            `DotProduct` with rotary positions or a bias, a `Mechanism`, a `Performer`, a `HeadGate`
            around any of them, or a module of your own that is called as `DotProduct` is. It can be
            assigned later, in a layer of a transformer as well: `layer.self_attention.attend = …`.

    Source:
        Vaswani et al. 2017, §3.2.2; Ainslie et al. 2023, §2.2, and Shazeer 2019 for n_kv_heads.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, causal_mask
        >>> attention = MultiHeadAttention(d_model=8, n_heads=4)
        >>> output, weights = attention(torch.randn(3, 6, 8), mask=causal_mask(6))
        >>> output.shape, weights.shape
        (torch.Size([3, 6, 8]), torch.Size([3, 4, 6, 6]))
        >>> weights[0, 0, 0].tolist()  # the first token sees itself alone
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_key: int | None = None,
        dropout: float = 0.0,
        bias: bool | str = True,
        attend: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if d_key is None:
            require_n_heads(d_model, n_heads)
            d_key = d_model // n_heads
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        require_size("d_model", d_model)
        require_size("d_key", d_key)
        require_divides("n_kv_heads", n_kv_heads, "n_heads", n_heads)
        with_bias = letters_of_bias(bias)
        if attend is not None and dropout:
            raise ValueError(f"give dropout={dropout} to attend, as in DotProduct({dropout})")
        self.d_model, self.n_heads, self.n_kv_heads = d_model, n_heads, n_kv_heads
        self.d_key = d_key
        self.w_q = nn.Linear(d_model, n_heads * d_key, bias="q" in with_bias)
        self.w_k = nn.Linear(d_model, n_kv_heads * d_key, bias="k" in with_bias)
        self.w_v = nn.Linear(d_model, n_kv_heads * d_key, bias="v" in with_bias)
        self.w_o = nn.Linear(n_heads * d_key, d_model, bias="o" in with_bias)
        self.attend = DotProduct(dropout) if attend is None else attend

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"] | None = None,
        value: Float[Tensor, "batch key d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        cache: KeyValueCache | RollingCache | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query _"] | None]:
        """Attend from every query to the keys.

        Args:
            query: (batch, query, d_model).
            key: (batch, key, d_model); the queries themselves unless given (self-attention).
            value: (batch, key, d_model); the keys unless given.
            mask: boolean, True = may attend; (query, key), or four axes that broadcast to (batch,
                heads, query, key). A query that may attend to nothing gets weights 0, its heads
                return 0, and its output is the bias of w_o.
            causal: hides the future, as mask=causal_mask(n) does, in addition to what a mask hides.
                Without weights it is faster than the mask: see `fused_attention`.
            cache: takes the keys and values of these tokens, which then attend to all that it
                holds. The axis `key` of the weights and of the mask counts all the keys held. Pass
                causal=True with several tokens; a single one has no future to hide. A
                `RollingCache` keeps the last tokens and the first, and takes no mask.
            need_weights: False returns None for the weights and computes the output as
                `fused_attention` does, faster and without a query × key matrix. True computes it as
                `scaled_dot_product_attention` does, at the cost that is stated there.

        Returns:
            output (batch, query, d_model) and weights (batch, heads, query, key), None where
            `attend` makes none.

        Raises:
            ValueError: the shapes do not fit, including the shape of what attend returns;
                causal=True is asked of a mechanism that cannot hide the future; a cache is given in
                cross-attention or to a mechanism that keeps nothing; a mask is given with a
                `RollingCache`; and as `KeyValueCache.append` does. A call that is refused leaves
                the cache as it was.
            TypeError: a tensor holds integers, or the mask is not boolean.
        """
        kept = 0
        if cache is not None:
            require_cache(cache, self.attend, key, value, mask)
            kept = cache.length
        key = query if key is None else key
        value = key if value is None else value
        require_sequences(self, query, key, value, mask, kept)

        q = split(self.w_q(query), self.n_heads)  # (batch, heads, query, d_key)
        k = split(self.w_k(key), self.n_kv_heads)  # (batch, kv_heads, key, d_key)
        v = split(self.w_v(value), self.n_kv_heads)  # (batch, kv_heads, key, d_key)
        options = {} if cache is None else {"cache": cache}
        attended, weights = self.attend(
            q, k, v, mask, causal=causal, need_weights=need_weights, **options
        )
        require_shape("the output of attend", attended, q.shape, "batch heads query d_key")
        return self.w_o(merge(attended)), weights  # (batch, query, d_model)

    def new_cache(self, batch: int, max_length: int) -> KeyValueCache:
        """Make an empty cache for this layer, with its heads, width, dtype and device.

        Under autocast it has the dtype that autocast gives to the keys and values.

        Raises:
            ValueError: the module that attends takes no cache.
        """
        require_keeps(self.attend)
        w, sizes = self.w_k.weight, (batch, self.n_kv_heads, max_length, self.d_key)
        return KeyValueCache(*sizes, dtype=autocast_dtype(w) or w.dtype, device=w.device)

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Copy torch's module, with its weights, dtype, device, dropout and training mode.

        The copy is batch-first, whatever torch's module is.

        Raises:
            ValueError: torch's module has kdim, vdim, add_bias_kv or add_zero_attn, which this one
                lacks.
            TypeError: for another module.
        """
        if not isinstance(module, nn.MultiheadAttention):
            kind = type(module).__name__
            raise TypeError(f"module must be a torch.nn.MultiheadAttention, got {kind}")
        if module.in_proj_weight is None:
            raise ValueError(
                f"module has kdim={module.kdim} and vdim={module.vdim}; here keys and values must "
                f"be as wide as queries: kdim = vdim = embed_dim = {module.embed_dim}"
            )
        if module.bias_k is not None or module.add_zero_attn:
            name = "add_zero_attn" if module.bias_k is None else "add_bias_kv"
            raise ValueError(f"module has {name}=True, an extra key that does not exist here")

        bias = module.in_proj_bias is not None
        ours = cls(module.embed_dim, module.num_heads, dropout=module.dropout, bias=bias)
        ours.to(module.in_proj_weight).train(module.training)
        with torch.no_grad():
            # PyTorch stacks the three projections into one matrix of 3 · d_model rows.
            for i, w in enumerate((ours.w_q, ours.w_k, ours.w_v)):
                rows = slice(i * ours.d_model, (i + 1) * ours.d_model)
                w.weight.copy_(module.in_proj_weight[rows])
                if bias:
                    w.bias.copy_(module.in_proj_bias[rows])
        ours.w_o.load_state_dict(module.out_proj.state_dict())
        return ours

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to assign anything but a module to `attend`."""
        if name == "attend" and not isinstance(value, nn.Module):
            raise TypeError(
                f"attend must be a module, got {type(value).__name__}; Mechanism(function) makes "
                "one of a function of q, k, v and mask"
            )
        super().__setattr__(name, value)

    def extra_repr(self) -> str:
        shared = f", n_kv_heads={self.n_kv_heads}" if self.n_kv_heads != self.n_heads else ""
        return f"d_model={self.d_model}, n_heads={self.n_heads}{shared}"
