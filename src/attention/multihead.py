"""Multi-head attention: four projections around scaled dot-product attention (chapters 2 and 7)."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import require_dropout, require_n_heads, require_sequences
from attention.dot_product import attend, attend_fused
from attention.heads import merge, split
from attention.masks import with_causal


class MultiHeadAttention(nn.Module):
    """Several heads attend in parallel, each in its own d_key = d_model / n_heads columns.

    Parameters: `w_q`, `w_k`, `w_v` and `w_o`, each an nn.Linear with `.weight` (d_model, d_model),
    which it stores transposed, and `.bias` (d_model).

    Args:
        d_model: the width of a token's vector, in and out.
        n_heads: how many heads; it must divide d_model. No parameter's shape depends on it.
        dropout: the probability that an attention weight is dropped, in training only.
        bias: whether the four projections add a bias.

    Attributes:
        head_gate: (heads,), a factor on each head's result before the heads are merged; 0 switches
            a head off, and the weights it returns stay. Its gradient says how much the loss
            depends on each head. A buffer that no state_dict holds.
        qk_transform: a module that maps q and k after the split, (batch, heads, query, d_key) and
            (batch, heads, key, d_key), to two tensors of these shapes, such as `Rotary` or
            `QKNorm`.
        score_bias: a module that maps n_queries and n_keys to numbers (heads, query, key), added to
            the scaled scores before mask and softmax, such as `LinearBias`. Without weights it
            still costs a matrix of query × key numbers per head.

        mechanism: a function that takes the place of scaled dot-product attention: of q, k and v
            after the split and of the mask, to each head's result (batch, heads, query, d_key),
            such as `partial(linear_attention, causal=True)`. It says itself what is hidden, and
            makes no weights.

    All four are None unless assigned, in a layer of a transformer as well:
    `layer.self_attention.qk_transform = Rotary(layer.self_attention.d_key)`.

    Source:
        Vaswani et al. 2017, §3.2.2; Michel et al. 2019, "Masking Attention Heads", for head_gate.

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
        self, d_model: int, n_heads: int, *, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
        require_dropout(dropout)
        self.d_model, self.n_heads, self.d_key = d_model, n_heads, d_model // n_heads
        self.dropout = dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        self.register_buffer("head_gate", None, persistent=False)
        self.qk_transform: nn.Module | None = None
        self.score_bias: nn.Module | None = None
        self.mechanism: Callable[..., Tensor] | None = None

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"] | None = None,
        value: Float[Tensor, "batch key d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query key"] | None]:
        """Attend from every query to the keys.

        Args:
            query: (batch, query, d_model).
            key: (batch, key, d_model); the queries themselves unless given (self-attention).
            value: (batch, key, d_model); the keys unless given.
            mask: boolean, True = may attend; (query, key), or four axes that broadcast to (batch,
                heads, query, key). A query that may attend to nothing gets weights 0, its heads
                return 0, and its output is the bias of w_o.
            causal: hides the future, as mask=causal_mask(n) does, and besides a mask. Without
                weights it is quicker than the mask: see `fused_attention`.
            need_weights: False returns None for the weights and computes the output as
                `fused_attention` does, quicker and without a query × key matrix. True computes it
                as `scaled_dot_product_attention` does, which says what that costs.

        Returns:
            output (batch, query, d_model) and weights (batch, heads, query, key), None where a
            mechanism is assigned.

        Raises:
            ValueError: the shapes do not fit, those of head_gate and of what score_bias and
                mechanism return included; or causal, score_bias or dropout is given to a mechanism.
            TypeError: a tensor holds integers, or the mask is not boolean.
        """
        key = query if key is None else key
        value = key if value is None else value
        require_sequences(self, query, key, value, mask)

        q = split(self.w_q(query), self.n_heads)  # (batch, heads, query, d_key)
        k = split(self.w_k(key), self.n_heads)  # (batch, heads, key, d_key)
        v = split(self.w_v(value), self.n_heads)  # (batch, heads, key, d_key)
        if self.qk_transform is not None:
            q, k = self.qk_transform(q, k)
        bias = None
        if self.score_bias is not None:
            n_queries, n_keys = query.shape[1], key.shape[1]
            bias = self.score_bias(n_queries, n_keys)
            shape = (self.n_heads, n_queries, n_keys)
            require_shape("the result of score_bias", bias, shape, "heads query key")
        dropout = self.dropout if self.training else 0.0
        if self.mechanism is not None:
            self._require_mechanism_alone(causal, dropout)
            attended, weights = self.mechanism(q, k, v, mask), None
            require_shape("the result of mechanism", attended, q.shape, "batch heads query d_key")
        elif need_weights:
            mask = with_causal(mask, q, k) if causal else mask
            attended, weights = attend(q, k, v, mask, bias=bias, dropout=dropout)
        else:
            attended = attend_fused(q, k, v, mask, bias=bias, dropout=dropout, causal=causal)
            weights = None
        if self.head_gate is not None:
            require_shape("head_gate", self.head_gate, (self.n_heads,), "heads")
            attended = attended * self.head_gate.to(attended.dtype)[:, None, None]
        return self.w_o(merge(attended)), weights

    def _require_mechanism_alone(self, causal: bool, dropout: float) -> None:
        """Require that nothing is asked of an assigned mechanism that it would not hear of."""
        if causal:
            raise ValueError(
                "causal=True does not reach the mechanism, which says itself what it hides; call "
                "without it, and assign for example partial(linear_attention, causal=True)"
            )
        if self.score_bias is not None or dropout:
            name = "score_bias" if self.score_bias is not None else f"dropout={dropout}"
            raise ValueError(
                f"{name} is for the scores or weights of scaled dot-product attention, and a "
                "mechanism has taken its place; leave one of the two out"
            )

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
            # torch stacks the three projections into one matrix of 3 · d_model rows.
            for i, w in enumerate((ours.w_q, ours.w_k, ours.w_v)):
                rows = slice(i * ours.d_model, (i + 1) * ours.d_model)
                w.weight.copy_(module.in_proj_weight[rows])
                if bias:
                    w.bias.copy_(module.in_proj_bias[rows])
        ours.w_o.load_state_dict(module.out_proj.state_dict())
        return ours

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, n_heads={self.n_heads}, dropout={self.dropout}"


def require_shape(name: str, x: Tensor, shape: tuple[int, ...], axes: str) -> None:
    """Require exactly this shape: a size of 1 would broadcast, and give every head the same."""
    if x.shape != shape:
        raise ValueError(
            f"{name} must have shape ({', '.join(axes.split())}) = {tuple(shape)}, "
            f"got {tuple(x.shape)}"
        )
