"""Additive attention: a small network with one hidden layer compares a query with a key.

Scaled dot-product attention scores a pair by a dot product. Here query and key are projected to
`hidden_dim` columns and added, and the score is v · tanh(W_q · query + W_k · key). Query and key
may therefore differ in width. The paper does not scale the scores: tanh keeps every hidden unit
between -1 and 1, so that no score is larger than the sum of the absolute values of v's entries,
however wide query and key are. That sum can grow with `hidden_dim`. The softmax and the weighted
sum are the same in both.

The price is a hidden layer for every pair: query · key · hidden_dim numbers to compute and to hold.
The dot product is one matrix product, which leaves query · key numbers.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import (
    require_dtype,
    require_dtype_of,
    require_mask,
    require_same_sequences,
    require_shape,
    require_size,
    require_vectors,
)
from attention.dot_product import masked_softmax


class AdditiveAttention(nn.Module):
    """softmax over keys of v · tanh(W_q · query + W_k · key), then the weighted sum of the values.

    Parameters by name: `w_q.weight` (hidden_dim, query_dim), `w_k.weight` (hidden_dim, key_dim) and
    `v.weight` (1, hidden_dim). In the paper they are W_a, U_a and v_a, also without biases. The
    same score is often written v · tanh(W · [query; key]): W is w_q and w_k side by side.

    Args:
        query_dim: the width of the queries.
        key_dim: the width of the keys.
        hidden_dim: how many hidden units compare a query with a key.

    Cost:
        O(query · key · (hidden_dim + d_value)) time and O(query · key · hidden_dim) memory, and for
        the projections O(query · query_dim · hidden_dim + key · key_dim · hidden_dim) time. With
        `projected_key`, the second of these two terms is not paid.

    Source:
        Bahdanau, Cho and Bengio 2014, §3.1 and appendix A.1.2.

    Example:
        >>> import torch
        >>> from attention import AdditiveAttention
        >>> attention = AdditiveAttention(query_dim=3, key_dim=5, hidden_dim=4)
        >>> context, weights = attention(torch.randn(2, 6, 3), torch.randn(2, 7, 5))
        >>> context.shape, weights.shape
        (torch.Size([2, 6, 5]), torch.Size([2, 6, 7]))
        >>> torch.allclose(weights.sum(-1), torch.ones(2, 6))
        True
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int) -> None:
        super().__init__()
        require_size("query_dim", query_dim)
        require_size("key_dim", key_dim)
        require_size("hidden_dim", hidden_dim)
        self.query_dim, self.key_dim, self.hidden_dim = query_dim, key_dim, hidden_dim
        self.w_q = nn.Linear(query_dim, hidden_dim, bias=False)
        self.w_k = nn.Linear(key_dim, hidden_dim, bias=False)
        self.v = nn.Linear(hidden_dim, 1, bias=False)

    def forward(
        self,
        query: Float[Tensor, "batch query query_dim"],
        key: Float[Tensor, "batch key key_dim"],
        value: Float[Tensor, "batch key d_value"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        *,
        projected_key: Float[Tensor, "batch key hidden_dim"] | None = None,
    ) -> tuple[Float[Tensor, "batch query d_value"], Float[Tensor, "batch query key"]]:
        """Attend from every query to the keys.

        Args:
            query: (batch, query, query_dim).
            key: (batch, key, key_dim).
            value: (batch, key, d_value); the keys themselves unless given.
            mask: boolean, True = may attend; (query, key), or three axes that broadcast to (batch,
                query, key): there is no axis of heads, so take padding_mask(ids, pad_id)[:, 0]. A
                query that may attend to nothing gets weights 0 and context 0.
            projected_key: `w_k(key)`, (batch, key, hidden_dim), from a caller that attends to the
                same keys several times (appendix A.1.2); computed here unless given.

        Returns:
            context (batch, query, d_value) and weights (batch, query, key).

        Raises:
            ValueError: for shapes that do not fit.
            TypeError: for integer tensors and for masks that are not boolean.
        """
        value = key if value is None else value
        require_vectors("query", query, "batch query query_dim", last=self.query_dim)
        require_vectors("key", key, "batch key key_dim", last=self.key_dim)
        require_vectors("value", value, "batch key d_value")
        require_same_sequences(query, key, value)
        require_dtype_of(self, query=query)
        if mask is not None:
            require_mask(mask, (*query.shape[:2], key.shape[1]))
        if projected_key is None:
            projected_key = self.w_k(key)
        else:  # what w_k(key) returns
            require_vectors("projected_key", projected_key, "batch key hidden_dim")
            shape = (*key.shape[:2], self.hidden_dim)
            require_shape("projected_key", projected_key, shape, "batch key hidden_dim")
            require_dtype("projected_key", projected_key, "query", query.dtype)
        return self.attend(query, projected_key, value, mask)

    def attend(
        self,
        query: Float[Tensor, "batch query query_dim"],
        projected_key: Float[Tensor, "batch key hidden_dim"],
        value: Float[Tensor, "batch key d_value"],
        mask: Bool[Tensor, "..."] | None,
    ) -> tuple[Float[Tensor, "batch query d_value"], Float[Tensor, "batch query key"]]:
        """`forward` for projected keys, without its argument checks."""
        # W_q · query once per query and W_k · key once per key: only their sum is made per pair.
        pairs = self.w_q(query)[:, :, None] + projected_key[:, None]  # (batch, query, key, hidden)
        scores = self.v(torch.tanh(pairs)).squeeze(-1)  # (batch, query, key)
        weights = masked_softmax(scores, mask)
        return weights @ value, weights

    def extra_repr(self) -> str:
        return f"query_dim={self.query_dim}, key_dim={self.key_dim}, hidden_dim={self.hidden_dim}"
