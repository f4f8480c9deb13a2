"""The same mathematics with one small module per head (chapters 3 and 7)."""

from typing import Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.checks import check_keys_and_values, check_mask, check_n_heads, check_vectors
from attention.dot_product import scaled_dot_product_attention
from attention.multihead import MultiHeadAttention


class Head(nn.Module):
    """One head: it projects d_model columns to its own d_key and attends there."""

    def __init__(self, d_model: int, d_key: int, *, bias: bool = True) -> None:
        super().__init__()
        self.w_q = nn.Linear(d_model, d_key, bias=bias)
        self.w_k = nn.Linear(d_model, d_key, bias=bias)
        self.w_v = nn.Linear(d_model, d_key, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"],
        value: Float[Tensor, "batch key d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch query d_key"], Float[Tensor, "batch query key"]]:
        """-> output (batch, query, d_key), weights (batch, query, key)."""
        return scaled_dot_product_attention(self.w_q(query), self.w_k(key), self.w_v(value), mask)


class PerHeadAttention(nn.Module):
    """Multi-head attention as the paper's formula reads: Concat(head_1, …, head_h) · W_o.

    Slower than `MultiHeadAttention` and equal to it: head h holds rows h·d_key to (h+1)·d_key - 1 of its
    `w_q.weight`, `w_k.weight` and `w_v.weight`.

    Parameters by name: `heads.0.w_q`, `heads.0.w_k`, `heads.0.w_v` (d_key, d_model), …, `w_o`.
    """

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        check_n_heads(d_model, n_heads)
        self.d_model, self.n_heads, self.d_key = d_model, n_heads, d_model // n_heads
        self.heads = nn.ModuleList(Head(d_model, self.d_key, bias=bias) for _ in range(n_heads))
        self.w_o = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"] | None = None,
        value: Float[Tensor, "batch key d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch heads query key"]]:
        """As `MultiHeadAttention.forward`; the weights are always returned."""
        key = query if key is None else key
        value = key if value is None else value
        for name, x in (("query", query), ("key", key), ("value", value)):
            check_vectors(
                name, x, f"batch {'query' if name == 'query' else 'key'} d_model", last=self.d_model
            )
        check_keys_and_values(query, key, value)
        masks = [None] * self.n_heads
        if mask is not None:
            shape = (query.shape[0], self.n_heads, query.shape[1], key.shape[1])
            check_mask(mask, shape)
            masks = mask.expand(shape).unbind(1)  # one (batch, query, key) per head

        attended = [head(query, key, value, m) for head, m in zip(self.heads, masks, strict=True)]
        outputs, weights = zip(*attended, strict=True)
        return self.w_o(torch.cat(outputs, dim=-1)), torch.stack(weights, dim=1)

    @classmethod
    def from_multi_head(cls, module: MultiHeadAttention) -> Self:
        """The same module with a copy of the weights, a slice for each head."""
        ours = cls(module.d_model, module.n_heads, bias=module.w_q.bias is not None)
        ours.to(module.w_q.weight)
        with torch.no_grad():
            for name in ("w_q", "w_k", "w_v"):
                whole = getattr(module, name).state_dict()
                for h, head in enumerate(ours.heads):
                    rows = slice(h * ours.d_key, (h + 1) * ours.d_key)
                    getattr(head, name).load_state_dict({k: t[rows] for k, t in whole.items()})
        ours.w_o.load_state_dict(module.w_o.state_dict())
        return ours.train(module.training)
