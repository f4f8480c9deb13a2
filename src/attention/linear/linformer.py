"""Linformer: attention over k mixtures of the keys instead of over the keys.

Linformer multiplies the n rows of the keys by a learned matrix E of shape (k, n), and the values by
another, F. Each of the k resulting rows is a mixture of all n rows, and every query attends to
these k mixtures: scores of shape (n, k) replace those of shape (n, n), so time and memory grow as
n·k. The paper calls k the projected dimension; here it is `proj_len`.

Nothing else differs from scaled dot-product attention, and if k = n and both matrices are the
identity, nothing differs at all. E and F have one column for each position, so the greatest length
is part of the model.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import (
    require_dtype,
    require_dtype_of,
    require_heads,
    require_padding_mask,
    require_size,
    require_vectors,
)
from attention.fused import attend_fused
from attention.heads import for_each_head


def require_fits(E: Tensor, mask: Tensor | None, scores: tuple[int, ...]) -> None:
    """Require a column of E for each key, and a mask of keys alone."""
    if scores[-1] > E.shape[1]:
        raise ValueError(
            f"{scores[-1]} keys are more than E and F of shape {tuple(E.shape)} have columns; "
            f"cut the keys to {E.shape[1]}, or build both matrices for a greater length"
        )
    if mask is not None:
        require_padding_mask(mask, scores, "Linformer")


def linformer_attention(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    E: Float[Tensor, "proj_len max_length"],
    F: Float[Tensor, "proj_len max_length"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch heads query d_value"]:
    """softmax(query · (E · key)ᵀ / √d_key) · (F · value): attend to mixtures of the keys.

    Args:
        query: (batch, heads, query, d_key).
        key: (batch, heads, key, d_key).
        value: (batch, heads, key, d_value).
        E: (proj_len, max_length), mixes the rows of the keys. Where there are fewer keys than
            max_length, the first columns are used.
        F: (proj_len, max_length), mixes the rows of the values.
        mask: boolean, True = may attend, the same for all queries: (batch, 1, 1, key), as
            `padding_mask` makes it. The rows of masked keys and values are set to zero before they
            are mixed, so that no output depends on them. This does less than masking scores does: a
            mixture of masked keys alone has score 0 and value 0, and still takes its share of the
            weights.

    Returns:
        The output, (batch, heads, query, d_value).

    Raises:
        ValueError: for a mask that differs between queries, such as a causal one (after the mixing
            no score belongs to a single key, so there is none to mask), for more keys than
            max_length, and for shapes that do not fit.

    Cost:
        O(n · proj_len · d_key) time and O(n · proj_len) memory for each head, n queries and n keys.

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
    require_heads(query, key, value)
    require_vectors("E", E, "proj_len max_length")
    require_vectors("F", F, "proj_len max_length")
    require_dtype("E", E, "query", query.dtype)
    require_dtype("F", F, "query", query.dtype)
    if E.shape != F.shape:
        raise ValueError(
            "E and F must have the same shape (proj_len, max_length), "
            f"got {tuple(E.shape)} and {tuple(F.shape)}"
        )
    require_fits(E, mask, (*query.shape[:-1], key.shape[-2]))
    return attend_to_mixtures(query, key, value, E, F, mask)


def attend_to_mixtures(
    query: Float[Tensor, "batch heads query d_key"],
    key: Float[Tensor, "batch heads key d_key"],
    value: Float[Tensor, "batch heads key d_value"],
    E: Float[Tensor, "proj_len max_length"],
    F: Float[Tensor, "proj_len max_length"],
    mask: Bool[Tensor, "..."] | None,
) -> Float[Tensor, "batch heads query d_value"]:
    """`linformer_attention` without its argument checks."""
    if mask is not None:
        kept = mask.transpose(-2, -1)  # (..., key, 1)
        key, value = key.masked_fill(~kept, 0.0), value.masked_fill(~kept, 0.0)
    n_keys = key.shape[-2]
    mixed_keys = E[:, :n_keys] @ key  # (batch, heads, proj_len, d_key)
    mixed_values = F[:, :n_keys] @ value  # (batch, heads, proj_len, d_value)
    return attend_fused(query, mixed_keys, mixed_values)


class Linformer(nn.Module):
    """What attends in `MultiHeadAttention` to proj_len mixtures of the keys and of the values.

    Parameters by name: `E` and `F`, each (proj_len, max_length) and shared by all heads of the
    layer, which the paper calls headwise sharing. They start as independent normal numbers of
    variance 1 / max_length, with which a mixture of unrelated rows varies as much as one row.

    Args:
        max_length: the greatest number of keys, n. Shorter inputs use the first columns of E and F.
        proj_len: the number of mixtures, the paper's k.

    Source:
        Wang et al. 2020, §4.

    Example:
        >>> import torch
        >>> from attention import Linformer, MultiHeadAttention
        >>> module = MultiHeadAttention(8, 2, attend=Linformer(max_length=100, proj_len=4))
        >>> output, weights = module(torch.zeros(3, 60, 8))
        >>> output.shape, weights
        (torch.Size([3, 60, 8]), None)
    """

    def __init__(self, *, max_length: int, proj_len: int) -> None:
        super().__init__()
        require_size("max_length", max_length)
        require_size("proj_len", proj_len)
        self.max_length, self.proj_len = max_length, proj_len
        scale = 1 / math.sqrt(max_length)
        self.E = nn.Parameter(torch.randn(proj_len, max_length) * scale)
        self.F = nn.Parameter(torch.randn(proj_len, max_length) * scale)

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
            k: (batch, kv_heads, key, d_key), copied for each query head.
            v: (batch, kv_heads, key, d_value).
            mask: which keys are not padding, (batch, 1, 1, key), as for `linformer_attention`.
            causal: refused, since every mixture holds keys of the future.
            need_weights: changes nothing: no weights are made.

        Raises:
            ValueError, TypeError: as `linformer_attention` does, and for causal=True.
        """
        if causal:
            raise ValueError(
                "causal=True asks for a hidden future, and Linformer mixes all keys before any "
                "score is made; use it in an encoder or for cross-attention, or `linear_attention` "
                "here"
            )
        require_dtype_of(self, q=q)
        require_fits(self.E, mask, (*q.shape[:-1], k.shape[-2]))
        k, v = for_each_head(k, q.shape[1]), for_each_head(v, q.shape[1])
        return attend_to_mixtures(q, k, v, self.E, self.F, mask), None

    def extra_repr(self) -> str:
        return f"max_length={self.max_length}, proj_len={self.proj_len}"
