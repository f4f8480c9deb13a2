"""Multi-head attention with one small module per head (chapters 3 and 7)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import require_module, require_n_heads, require_sequences
from attention.dot_product import attend, require_plain
from attention.multihead import MultiHeadAttention


class Head(nn.Module):
    """One head: project d_model columns to d_key, and attend there."""

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
        """Return output (batch, query, d_key) and weights (batch, query, key)."""
        return attend(self.w_q(query), self.w_k(key), self.w_v(value), mask)


class PerHeadAttention(nn.Module):
    """Multi-head attention as the paper's formula reads: Concat(head_1, …, head_h) · W_o.

    It computes the same numbers as `MultiHeadAttention`, but more slowly and without dropout. Head
    h holds the rows h·d_key to (h+1)·d_key - 1 of that module's `w_q`, `w_k` and `w_v`.

    Parameters: `heads.0.w_q`, `heads.0.w_k`, `heads.0.w_v`, then `heads.1.w_q` and so on,
    each with `.weight` (d_key, d_model) and `.bias` (d_key); `w_o.weight` (d_model, d_model) and
    `w_o.bias` (d_model).

    Args:
        d_model, n_heads, bias: as for `MultiHeadAttention`.

    Source:
        Vaswani et al. 2017, §3.2.2.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, PerHeadAttention
        >>> whole, x = MultiHeadAttention(d_model=8, n_heads=2), torch.randn(1, 5, 8)
        >>> output, weights = PerHeadAttention.from_multi_head(whole)(x)
        >>> torch.allclose(output, whole(x)[0], atol=1e-6)
        True
    """

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
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
        """Attend as `MultiHeadAttention.forward` does; the weights are always returned.

        Args:
            query: (batch, query, d_model).
            key: (batch, key, d_model); the queries unless given.
            value: (batch, key, d_model); the keys unless given.
            mask: as in `MultiHeadAttention.forward`.

        Returns:
            output (batch, query, d_model) and weights (batch, heads, query, key).
        """
        key = query if key is None else key
        value = key if value is None else value
        require_sequences(self, query, key, value, mask)

        masks = [None] * self.n_heads
        if mask is not None:
            shape = (query.shape[0], self.n_heads, query.shape[1], key.shape[1])
            masks = mask.expand(shape).unbind(1)  # one (batch, query, key) per head

        attended = [head(query, key, value, m) for head, m in zip(self.heads, masks, strict=True)]
        outputs, weights = zip(*attended, strict=True)
        return self.w_o(torch.cat(outputs, dim=-1)), torch.stack(weights, dim=1)

    @classmethod
    def from_multi_head(cls, module: MultiHeadAttention) -> "PerHeadAttention":
        """Copy the weights of a `MultiHeadAttention`, a slice for each head.

        Raises:
            ValueError: the module does not attend by a plain `DotProduct`, has fewer KV heads or
                another d_key, or drops weights, which this one cannot do.
        """
        require_module("module", module, MultiHeadAttention)
        require_plain(module.attend)
        if module.attend.dropout:
            raise ValueError(
                f"module has dropout={module.attend.dropout}, and this one drops nothing; set "
                "module.attend.dropout = 0.0 to copy the weights"
            )
        projections = (module.w_q, module.w_k, module.w_v, module.w_o)
        square = all(w.weight.shape == (module.d_model, module.d_model) for w in projections)
        if not square or len({w.bias is None for w in projections}) > 1:
            raise ValueError(
                "here every head has keys and values of its own, d_key = d_model / n_heads wide, "
                f"and all projections a bias or none; module is {module}"
            )
        ours = cls(module.d_model, module.n_heads, bias=module.w_q.bias is not None)
        ours.to(module.w_q.weight).train(module.training)
        for name in ("w_q", "w_k", "w_v"):
            whole = getattr(module, name).state_dict()  # weight, and bias where there is one
            for h, head in enumerate(ours.heads):
                rows = slice(h * ours.d_key, (h + 1) * ours.d_key)
                slices = {part: tensor[rows] for part, tensor in whole.items()}
                getattr(head, name).load_state_dict(slices)
        ours.w_o.load_state_dict(module.w_o.state_dict())
        return ours

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, n_heads={self.n_heads}"
