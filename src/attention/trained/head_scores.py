"""Scores that say what a head does: the mean weight that it gives to the keys of a pattern.

A pattern names, for each query, the keys that a head of some kind would look at: the token before,
an earlier copy of the same token, or the token that followed that copy. A score is between 0 and 1.
It finds the heads of a kind in a trained model. A stored index would not, because which head takes
which part depends on the seed.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention.arguments import require_token_ids, require_vectors


def aligned_score(
    weights: Float[Tensor, "batch heads query key"], pattern: Bool[Tensor, "batch query key"]
) -> Float[Tensor, " heads"]:
    """The mean weight of each head on the keys of a pattern.

    A query counts if the pattern has at least one key for it; the weights on all of these keys are
    added up. The mean is over all queries that count, in the whole batch.

    Args:
        weights: (batch, heads, query, key), as attention returns them.
        pattern: (batch, query, key), True where a query is to look at a key. A padding query for
            which the pattern has no key does not count.

    Returns:
        The scores, (heads).

    Raises:
        ValueError: the shapes do not fit, or the pattern has no key for any query.
        TypeError: pattern is not boolean.

    Example:
        >>> import torch
        >>> from attention.trained.head_scores import aligned_score
        >>> weights = torch.tensor([[0.9, 0.1, 0.0], [0.3, 0.2, 0.5]])[None, None]
        >>> pattern = torch.tensor([[False, False, False], [True, False, True]])[None]
        >>> aligned_score(weights, pattern)  # the first query does not count
        tensor([0.8000])
    """
    require_vectors("weights", weights, "batch heads query key")
    if not isinstance(pattern, Tensor) or pattern.dtype != torch.bool:
        got = pattern.dtype if isinstance(pattern, Tensor) else type(pattern).__name__
        raise TypeError(f"pattern must be a boolean tensor, True = to be looked at, got {got}")
    batch, _, query, key = weights.shape
    if pattern.shape != (batch, query, key):
        raise ValueError(
            f"pattern must have shape (batch, query, key) = ({batch}, {query}, {key}), as weights "
            f"{tuple(weights.shape)} have, got {tuple(pattern.shape)}; expand it to every sequence"
        )
    counts = pattern.any(-1)
    if not counts.any():
        raise ValueError("pattern names no key for any query; a mean needs at least one query")
    on_pattern = (weights * pattern[:, None]).sum(-1)  # (batch, heads, query)
    return on_pattern.movedim(1, -1)[counts].mean(0)


def previous_token_score(
    weights: Float[Tensor, "batch heads query key"],
) -> Float[Tensor, " heads"]:
    """The mean weight of each head on the token before the query.

    Every query counts but the first, which has no token before it. So padding must not be among
    the queries.

    Args:
        weights: (batch, heads, query, key), as self-attention returns them.

    Returns:
        The scores, (heads).

    Raises:
        ValueError: there are not as many queries as keys, or there is only one.

    Source:
        Elhage et al. 2021, "Induction heads", for the kind of head; Olsson et al. 2022, "Data
        collection", for the mean, which there is over one example; here it is over the whole batch.

    Example:
        >>> import torch
        >>> from attention.trained.head_scores import previous_token_score
        >>> weights = torch.tensor([[1.0, 0, 0], [0.9, 0.1, 0], [0.2, 0.7, 0.1]])[None, None]
        >>> previous_token_score(weights)  # the mean of 0.9 and 0.7
        tensor([0.8000])
    """
    require_self_attention(weights)
    batch, _, query, key = weights.shape
    before = torch.ones(query, key, dtype=torch.bool, device=weights.device).tril(-1).triu(-1)
    return aligned_score(weights, before.expand(batch, query, key))


def duplicate_token_score(
    weights: Float[Tensor, "batch heads query key"], token_ids: Int[Tensor, "batch key"]
) -> Float[Tensor, " heads"]:
    """The mean weight of each head on the previous occurrence of the query's token.

    A query counts if its token has occurred before. Where it has occurred several times, the key is
    the last of these occurrences, and never the query itself.

    Args:
        weights: (batch, heads, query, key), as self-attention returns them.
        token_ids: (batch, key).

    Returns:
        The scores, (heads).

    Raises:
        ValueError: the shapes do not fit, or no token occurs twice.
        TypeError: token_ids are not integers.

    Example:
        >>> import torch
        >>> from attention.trained.head_scores import duplicate_token_score
        >>> weights = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.7, 0.1, 0.2]])[None, None]
        >>> duplicate_token_score(weights, torch.tensor([[7, 4, 7]]))
        tensor([0.7000])
    """
    require_self_attention(weights, token_ids)
    return aligned_score(weights, previous_occurrence(token_ids))


def induction_score(
    weights: Float[Tensor, "batch heads query key"], token_ids: Int[Tensor, "batch key"]
) -> Float[Tensor, " heads"]:
    """The mean weight of each head on the token after the previous occurrence of the query's token.

    The queries that count are those of `duplicate_token_score`, and the key of the pattern is one
    position further: it is the query itself where its token comes twice in a row.

    Args:
        weights: (batch, heads, query, key), as self-attention returns them.
        token_ids: (batch, key).

    Returns:
        The scores, (heads).

    Raises:
        ValueError: the shapes do not fit, or no token occurs twice.
        TypeError: token_ids are not integers.

    Source:
        Olsson et al. 2022, "prefix matching". They count the tokens after all earlier occurrences;
        here only the token after the last one counts. Where a token has occurred once, the two are
        the same.

    Example:
        >>> import torch
        >>> from attention.trained.head_scores import induction_score
        >>> weights = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.7, 0.1, 0.2]])[None, None]
        >>> induction_score(weights, torch.tensor([[7, 4, 7]]))  # after the first 7 stands the 4
        tensor([0.1000])
    """
    require_self_attention(weights, token_ids)
    # The last key has no successor, but it is in no query's pattern, because it comes before no
    # query.
    return aligned_score(weights, previous_occurrence(token_ids).roll(1, dims=-1))


def previous_occurrence(token_ids: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch seq seq"]:
    """True where the key is the last one before the query that holds the query's token."""
    earlier = (token_ids[:, :, None] == token_ids[:, None, :]).tril(-1)
    later = earlier.flip(-1).cumsum(-1).flip(-1)  # how many from this key on
    return earlier & (later == 1)


def require_self_attention(weights: Tensor, token_ids: Tensor | None = None) -> None:
    """Require as many queries as keys, and one token for each where token ids are given."""
    require_vectors("weights", weights, "batch heads query key")
    batch, _, query, key = weights.shape
    if query != key:
        raise ValueError(
            "weights must be those of self-attention, as many queries as keys, "
            f"got {query} queries and {key} keys in shape {tuple(weights.shape)}"
        )
    if token_ids is not None:
        require_token_ids(token_ids)
        if token_ids.shape != (batch, key):
            raise ValueError(
                f"token_ids must have shape (batch, key) = ({batch}, {key}), as weights "
                f"{tuple(weights.shape)} have, got {tuple(token_ids.shape)}"
            )
