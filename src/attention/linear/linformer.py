"""Linformer: attention over k mixtures of the keys instead of over the keys.

Linformer multiplies the n rows of the keys by a learned matrix E of shape (k, n), and the values by
another, F. Each of the k rows that result is a mixture of all n rows, and every query attends to
these k mixtures: scores of shape (n, k) take the place of (n, n), so that time and memory grow as
n·k. Nothing else changes against scaled dot-product attention, and with k = n and both matrices the
identity nothing changes at all. E and F have one column for each position, so that the greatest
length is part of the model.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import (
    require_n_heads,
    require_padding_mask,
    require_same_sequences,
    require_size,
    require_vectors,
)
from attention.dot_product import fused_attention
from attention.heads import merge_heads, split_heads


def linformer_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    mix_keys: Float[Tensor, "mixture max_length"],
    mix_values: Float[Tensor, "mixture max_length"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch heads query d_value"]:
    """softmax(query · (E · key)ᵀ / √d_key) · (F · value), E = mix_keys and F = mix_values: output
    (batch, heads, query, d_value).

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        mix_keys: (k, max_length), what the rows of the keys are multiplied by. Where there are
            fewer keys than max_length, the first columns are used.
        mix_values: (k, max_length), the same for the values.
        mask: boolean, True = may attend, the same for all queries: (batch, 1, 1, key), as
            `padding_mask` makes it. The rows of masked keys and values are set to zero before they
            are mixed, so that no output depends on them. This is less than masking scores does: a
            mixture made of masked keys alone has score 0 and value 0, and still takes its share of
            the weights.

    Raises:
        ValueError: for a mask that differs between queries, such as a causal one (after the mixing,
            no score belongs to a single key, so that there is none to mask), for more keys than
            max_length, and for shapes that do not fit.

    Cost:
        O(n · k · d_key) time and O(n · k) memory for each head, n queries and n keys.

    Source:
        Wang et al. 2020, §4, equation 7.

    Example:
        >>> import torch
        >>> from attention import linformer_attention
        >>> x = torch.arange(12.0).reshape(1, 1, 6, 2)
        >>> halves = torch.kron(torch.eye(2), torch.full((1, 3), 1 / 3))  # the means of both halves
        >>> linformer_attention(x / 10, x, x, halves, halves)[0, 0, :2]
        tensor([[5.6270, 6.6270],
                [7.3577, 8.3577]])
    """
    require_vectors("query", query, "batch heads query d_key")
    require_vectors("key", key, "batch heads key d_key", last=query.shape[-1])
    require_vectors("value", value, "batch heads key d_value")
    require_same_sequences(query, key, value)
    require_vectors("mix_keys", mix_keys, "mixture max_length")
    require_vectors("mix_values", mix_values, "mixture max_length")
    mixes, n_keys = tuple(mix_keys.shape), key.shape[-2]
    if mixes != tuple(mix_values.shape):
        raise ValueError(
            "mix_keys and mix_values must have the same shape (k, max_length), "
            f"got {mixes} and {tuple(mix_values.shape)}"
        )
    if n_keys > mixes[1]:
        raise ValueError(
            f"{n_keys} keys are more than mix_keys and mix_values of shape {mixes} have columns; "
            f"cut the keys to {mixes[1]}, or build both matrices for a greater length"
        )
    if mask is not None:
        require_padding_mask(mask, (*query.shape[:-1], n_keys), "Linformer")
        keeps = mask.transpose(-2, -1)  # (..., key, 1)
        key, value = key.masked_fill(~keeps, 0.0), value.masked_fill(~keeps, 0.0)

    mixed_keys = mix_keys[:, :n_keys] @ key  # (batch, heads, k, d_key)
    mixed_values = mix_values[:, :n_keys] @ value  # (batch, heads, k, d_value)
    return fused_attention(query, mixed_keys, mixed_values)


class LinformerAttention(nn.Module):
    """Multi-head self-attention over n_mixtures mixtures of the keys and of the values.

    Parameters by name: `w_q`, `w_k`, `w_v` and `w_o` as in `MultiHeadAttention`; `mix_keys` (E) and
    `mix_values` (F), each (n_mixtures, max_length) and shared by all heads of the layer, which the
    paper calls headwise sharing. They start as independent normal numbers of variance 1 /
    max_length, with which a mixture of unrelated rows varies as much as one row.

    Args:
        d_model, n_heads, bias: as for `MultiHeadAttention`.
        max_length: the greatest number of tokens, n. Shorter inputs use the first columns of E and
            F.
        n_mixtures: the number of mixtures, k.

    Source:
        Wang et al. 2020, §4.

    Example:
        >>> import torch
        >>> from attention import LinformerAttention
        >>> LinformerAttention(8, 2, max_length=100, n_mixtures=4)(torch.zeros(3, 60, 8)).shape
        torch.Size([3, 60, 8])
    """

    def __init__(
        self, d_model: int, n_heads: int, *, max_length: int, n_mixtures: int, bias: bool = True
    ) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
        require_size("max_length", max_length)
        require_size("n_mixtures", n_mixtures)
        self.d_model, self.n_heads = d_model, n_heads
        self.max_length, self.n_mixtures = max_length, n_mixtures
        self.w_q = nn.Linear(d_model, d_model, bias=bias)
        self.w_k = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        scale = 1 / math.sqrt(max_length)
        self.mix_keys = nn.Parameter(torch.randn(n_mixtures, max_length) * scale)
        self.mix_values = nn.Parameter(torch.randn(n_mixtures, max_length) * scale)

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch seq d_model"]:
        """x (batch, seq, d_model) -> the same shape; mask, errors: as `linformer_attention`."""
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        q, k, v = (split_heads(w(x), self.n_heads) for w in (self.w_q, self.w_k, self.w_v))
        attended = linformer_attention(q, k, v, self.mix_keys, self.mix_values, mask)
        return self.w_o(merge_heads(attended))

    def extra_repr(self) -> str:
        return f"max_length={self.max_length}, n_mixtures={self.n_mixtures}"
