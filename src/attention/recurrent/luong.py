"""Luong attention: three ways to score a query against a key, without scaling.

*dot* is the product query · key. *general* puts a learned matrix between the two, query · W · key.
*concat* is the additive score v · tanh(W · [query; key]). Scaled dot-product attention is *dot*
divided by √d_key. Without the division the scores of wide vectors spread, and softmax gives almost
all weight to one key. *general* is the score of a single head with separate projections of query
and key, W = W_qᵀ · W_k. In such a head the rank of W is at most d_key, and the values have a
projection too.

Every query attends to every key. The paper calls this *global* attention; its *local* attention is
`LocalAttention`. *dot* and *general* cost as much as scaled dot-product attention, *concat* as much
as additive attention.
"""

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import (
    require_dtype_of,
    require_mask,
    require_same_sequences,
    require_size,
    require_vectors,
)
from attention.dot_product import attend
from attention.recurrent.additive import AdditiveAttention


class LuongAttention(nn.Module):
    """softmax over keys of score(query, key), then the weighted sum of the values.

    Parameters by name: for "general" `w.weight` (key_dim, query_dim), the paper's W_a transposed;
    for "concat" those of ``additive``, an `AdditiveAttention`. Its w_q and w_k side by side are the
    paper's W_a.

    Args:
        query_dim: the width of the queries.
        key_dim: the width of the keys.
        score: "dot", query · key, for equal widths and without parameters; "general", query · W ·
            key; "concat", v · tanh(W · [query; key]) with query_dim hidden units.

    Raises:
        ValueError: for a score that does not exist, and for "dot" with query_dim ≠ key_dim.

    Cost:
        O(query · key · (key_dim + d_value)) time and O(query · key) memory. "general" adds O(query
        · query_dim · key_dim) time. "concat" takes the time and memory of `AdditiveAttention` with
        hidden_dim = query_dim.

    Source:
        Luong, Pham and Manning 2015, §3.1, equation 7 and the three scores below it.

    Example:
        >>> import torch
        >>> from attention import LuongAttention, scaled_dot_product_attention
        >>> attention = LuongAttention(query_dim=4, key_dim=4, score="dot")
        >>> query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
        >>> context, weights = attention(query / 2, key)  # 2 = √d_key
        >>> expected, _ = scaled_dot_product_attention(query, key, key)
        >>> torch.allclose(context, expected, atol=1e-6)
        True
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        score: Literal["dot", "general", "concat"] = "general",
    ) -> None:
        super().__init__()
        require_size("query_dim", query_dim)
        require_size("key_dim", key_dim)
        if score not in ("dot", "general", "concat"):
            raise ValueError(f'score must be "dot", "general" or "concat", got {score!r}')
        if score == "dot" and query_dim != key_dim:
            raise ValueError(
                f'score="dot" needs queries and keys of one width, got query_dim={query_dim} and '
                f'key_dim={key_dim}; use score="general", which learns a matrix between them, or '
                'score="concat"'
            )
        self.query_dim, self.key_dim, self.score = query_dim, key_dim, score
        if score == "general":
            self.w = nn.Linear(query_dim, key_dim, bias=False)
        elif score == "concat":
            self.additive = AdditiveAttention(query_dim, key_dim, hidden_dim=query_dim)

    def forward(
        self,
        query: Float[Tensor, "batch query query_dim"],
        key: Float[Tensor, "batch key key_dim"],
        value: Float[Tensor, "batch key d_value"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch query d_value"], Float[Tensor, "batch query key"]]:
        """Attend from every query to the keys.

        Args:
            query: (batch, query, query_dim).
            key: (batch, key, key_dim).
            value: (batch, key, d_value); the keys themselves unless given.
            mask: boolean, True = may attend; (query, key), or three axes that broadcast to (batch,
                query, key): there is no axis of heads, so take padding_mask(ids, pad_id)[:, 0]. A
                query that may attend to nothing gets weights 0 and context 0.

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
        return self.attend(query, key, value, mask)

    def attend(
        self,
        query: Float[Tensor, "batch query query_dim"],
        key: Float[Tensor, "batch key key_dim"],
        value: Float[Tensor, "batch key d_value"],
        mask: Bool[Tensor, "..."] | None,
    ) -> tuple[Float[Tensor, "batch query d_value"], Float[Tensor, "batch query key"]]:
        """`forward` without its argument checks."""
        if self.score == "concat":
            return self.additive.attend(query, self.additive.w_k(key), value, mask)
        if self.score == "general":
            query = self.w(query)  # (batch, query, key_dim): query · W, once per query
        return attend(query, key, value, mask, scale=1.0)

    def extra_repr(self) -> str:
        return f"query_dim={self.query_dim}, key_dim={self.key_dim}, score={self.score!r}"
