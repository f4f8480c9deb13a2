"""Multi-head attention: four projections around scaled dot-product attention (chapters 2 and 7)."""

from typing import Self

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from attention.checks import (
    check_dropout,
    check_keys_and_values,
    check_mask,
    check_n_heads,
    check_vectors,
)
from attention.dot_product import scaled_dot_product_attention
from attention.heads import merge_heads, split_heads


class MultiHeadAttention(nn.Module):
    """Several heads attend side by side, each in its own d_key = d_model / n_heads columns.

    Parameters by name: `w_q`, `w_k`, `w_v`, `w_o`, each with `.weight` (d_model, d_model), stored transposed
    as in every nn.Linear, and `.bias` (d_model), unless bias=False.

    d_model: the width of every token's vector, in and out.
    n_heads: how many heads; it must divide d_model.
    dropout: the probability that an attention weight is dropped, in training only.

    Source: Vaswani et al. 2017, §3.2.2.
    """

    def __init__(
        self, d_model: int, n_heads: int, *, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        check_n_heads(d_model, n_heads)
        check_dropout(dropout)
        self.d_model, self.n_heads, self.d_key = d_model, n_heads, d_model // n_heads
        self.dropout = dropout
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"] | None = None,
        value: Float[Tensor, "batch key d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query key"] | None]:
        """query (batch, query, d_model), key and value (batch, key, d_model) -> (output, weights).

        key defaults to query (self-attention), value to key. output is (batch, query, d_model), weights are
        (batch, heads, query, key), or None with need_weights=False.
        """
        key = query if key is None else key
        value = key if value is None else value
        for name, x in (("query", query), ("key", key), ("value", value)):
            check_vectors(
                name, x, f"batch {'query' if name == 'query' else 'key'} d_model", last=self.d_model
            )
        check_keys_and_values(query, key, value)

        q = split_heads(self.w_q(query), self.n_heads)  # (batch, heads, query, d_key)
        k = split_heads(self.w_k(key), self.n_heads)  # (batch, heads, key, d_key)
        v = split_heads(self.w_v(value), self.n_heads)  # (batch, heads, key, d_key)
        dropout = self.dropout if self.training else 0.0
        if need_weights:
            attended, weights = scaled_dot_product_attention(q, k, v, mask, dropout=dropout)
        else:
            if mask is not None:
                check_mask(mask, (*q.shape[:3], k.shape[2]))
            attended, weights = F.scaled_dot_product_attention(q, k, v, mask, dropout), None
        return self.w_o(merge_heads(attended)), weights

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> Self:
        """The same module with a copy of the weights of torch's."""
        ours = cls(
            module.embed_dim,
            module.num_heads,
            dropout=module.dropout,
            bias=module.in_proj_bias is not None,
        )
        weight, bias = module.in_proj_weight, module.in_proj_bias
        for i, linear in enumerate((ours.w_q, ours.w_k, ours.w_v)):
            rows = slice(i * ours.d_model, (i + 1) * ours.d_model)
            linear.weight.data = weight.detach()[rows].clone()
            if bias is not None:
                linear.bias.data = bias.detach()[rows].clone()
        ours.w_o.load_state_dict(module.out_proj.state_dict())
        return ours.to(weight).train(module.training)

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, n_heads={self.n_heads}, dropout={self.dropout}"
