"""What recurrent layers cost, and the attention of recurrent decoders.

The counts are made as in `attention.cost.dense`: multiply-adds of matrix products for one sequence.
"""

from typing import Literal

from attention.arguments import require_size
from attention.cost.dense import Cost


def recurrent(n: int, d_model: int, gates: int = 1) -> Cost:
    """A recurrent layer over n positions, d_model wide in and out: O(n · d_model²), n steps.

    Args:
        n: how many positions.
        d_model: the width of a position.
        gates: how many pairs of matrices (with two biases, as torch has them) a position passes
            through: 1 for nn.RNN, 3 for nn.GRU, 4 for nn.LSTM. One matrix of each pair multiplies
            the input, for all positions at a time, and the other one multiplies the previous state.

    Source:
        Vaswani et al. 2017, §4 and table 1.

    Example:
        >>> from attention.cost.recurrent import recurrent
        >>> cost = recurrent(n=100, d_model=512)
        >>> cost.mixing == 100 * 512**2, cost.steps, cost.path
        (True, 100, 100)
    """
    require_size("n", n)
    require_size("d_model", d_model)
    require_size("gates", gates)
    return Cost(
        projections=n * gates * d_model * d_model,
        mixing=n * gates * d_model * d_model,
        parameters=2 * gates * (d_model * d_model + d_model),
        memory=gates * d_model,
        cache=d_model * (2 if gates == 4 else 1),  # an LSTM has two states
        steps=n,
        path=n,
    )


def additive(n_queries: int, n_keys: int, query_dim: int, key_dim: int, hidden_dim: int) -> Cost:
    """`AdditiveAttention`: hidden_dim numbers, not one, are held for each query and key.

    The keys are the values. In a decoder n_queries is the number of its steps, and the cache holds
    keys and projected keys.

    Source:
        Bahdanau, Cho and Bengio 2014, §3.1 and appendix A.1.2.

    Example:
        >>> from attention.cost.recurrent import additive
        >>> additive(n_queries=10, n_keys=20, query_dim=64, key_dim=64, hidden_dim=64).memory
        12800
    """
    sizes = {"n_queries": n_queries, "n_keys": n_keys, "query_dim": query_dim, "key_dim": key_dim}
    for name, size in {**sizes, "hidden_dim": hidden_dim}.items():
        require_size(name, size)
    return Cost(
        projections=(n_queries * query_dim + n_keys * key_dim) * hidden_dim,
        mixing=n_queries * n_keys * (hidden_dim + key_dim),  # v · tanh(…), then the weighted sum
        parameters=(query_dim + key_dim + 1) * hidden_dim,
        memory=n_queries * n_keys * hidden_dim,
        cache=n_keys * (hidden_dim + key_dim),
        steps=1,
        path=1,
    )


def luong(
    n_queries: int,
    n_keys: int,
    query_dim: int,
    key_dim: int,
    score: Literal["dot", "general", "concat"] = "general",
) -> Cost:
    """`LuongAttention`: one matrix for "general", none for "dot", additive attention for "concat".

    Source:
        Luong, Pham and Manning 2015, §3.1.

    Example:
        >>> from attention.cost.recurrent import luong
        >>> luong(10, 20, 64, 64, "dot").parameters, luong(10, 20, 64, 64, "general").parameters
        (0, 4096)
    """
    if score not in ("dot", "general", "concat"):
        raise ValueError(f'score must be "dot", "general" or "concat", got {score!r}')
    if score == "concat":
        return additive(n_queries, n_keys, query_dim, key_dim, hidden_dim=query_dim)
    sizes = {"n_queries": n_queries, "n_keys": n_keys, "query_dim": query_dim, "key_dim": key_dim}
    for name, size in sizes.items():
        require_size(name, size)
    if score == "dot" and query_dim != key_dim:
        raise ValueError(
            f'score="dot" needs queries and keys of one width, got query_dim={query_dim} and '
            f'key_dim={key_dim}; use score="general" or score="concat"'
        )
    matrix = query_dim * key_dim if score == "general" else 0
    return Cost(
        projections=n_queries * matrix,
        mixing=2 * n_queries * n_keys * key_dim,
        parameters=matrix,
        memory=n_queries * n_keys,
        cache=n_keys * key_dim,
        steps=1,
        path=1,
    )
