"""Boolean masks: True = this query may attend to this key (chapter 5).

Combine two with `&`: `padding_mask(ids, pad_id) & causal_mask(seq)` is (batch, 1, seq, seq).
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attention.arguments import require_size, require_token_ids


def padding_mask(token_ids: Int[Tensor, "batch key"], pad_id: int) -> Bool[Tensor, "batch 1 1 key"]:
    """True where the key is a token, False where it is padding; the same for every query and head.

    Padding queries are not masked, because nothing reads their outputs.

    Args:
        token_ids: (batch, key).
        pad_id: the id of the padding.

    Example:
        >>> import torch
        >>> from attention import padding_mask
        >>> padding_mask(torch.tensor([[5, 3, 0], [4, 0, 0]]), pad_id=0).int()[:, 0, 0]
        tensor([[1, 1, 0],
                [1, 0, 0]], dtype=torch.int32)
    """
    require_token_ids(token_ids)
    require_size("pad_id", pad_id, least=0)
    return (token_ids != pad_id)[:, None, None, :]


def causal_mask(
    n_queries: int, n_keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "query key"]:
    """True where the key is not in the query's future. The last query is aligned with the last key.

    Query i may attend to key j if j <= i + n_keys - n_queries. PyTorch's `is_causal=True` aligns
    the first query with the first key. That is the same where n_queries = n_keys, and wrong with
    cached keys.

    Args:
        n_queries: how many queries.
        n_keys: how many keys; n_queries unless given. With cached keys there are more keys than
            queries, and the last query still sees all of them. With more queries than keys, the
            first n_queries - n_keys queries see nothing, and attention gives them weights 0.
        device: the mask's device; torch's default unless given.

    Source:
        Vaswani et al. 2017, §3.2.3, for queries and keys of one length.

    Example:
        >>> from attention import causal_mask
        >>> causal_mask(2, 4).int()
        tensor([[1, 1, 1, 0],
                [1, 1, 1, 1]], dtype=torch.int32)
    """
    require_size("n_queries", n_queries)
    n_keys = n_queries if n_keys is None else n_keys
    require_size("n_keys", n_keys)
    return past_keys(n_queries, n_keys, device)


def past_keys(
    n_queries: int, n_keys: int, device: torch.device | str | None
) -> Bool[Tensor, "query key"]:
    """`causal_mask` without its argument checks."""
    key = torch.arange(n_keys, device=device)
    query = torch.arange(n_keys - n_queries, n_keys, device=device)  # positions among the keys
    return key <= query[:, None]


def with_causal(
    mask: Bool[Tensor, "..."] | None, query: Tensor, key: Tensor
) -> Bool[Tensor, "... query key"]:
    """The causal mask of these queries and keys, which also hides what `mask` hides."""
    past = past_keys(query.shape[-2], key.shape[-2], query.device)
    return past if mask is None else past & mask


def kept_keys(key: Tensor, mask: Tensor | None) -> Tensor:
    """Return which keys are not padding, (…, key, 1): one boolean for each row of key."""
    kept = torch.ones(1, 1, 1, key.shape[-2], dtype=torch.bool, device=key.device)
    return (kept if mask is None else kept & mask).transpose(-2, -1)
