"""What attention costs where a pattern says which keys a query sees.

The counts are made as in `attention.cost.dense`. Every pair of a query and a key that it sees takes
d_model multiply-adds for the score and as many for the weighted sum, and one number for each head
is held. The pairs are counted exactly: there are as many as the pattern's mask has. Computing them
in dense blocks takes more, because the blocks overlap the pattern's edges.
"""

from dataclasses import replace

from attention.arguments import require_size
from attention.cost.dense import Cost, multi_head
from attention.sparse.fixed import require_summary
from attention.sparse.window import window_reach


def of_pairs(pairs: int, n: int, d_model: int, n_heads: int, path: int | None) -> Cost:
    """Multi-head attention of n tokens in which only `pairs` pairs of tokens meet.

    Source:
        This book's count.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.sparse import of_pairs
        >>> of_pairs(10 * 10, 10, 8, 2, path=1) == multi_head(10, 8, 2)
        True
    """
    cost = multi_head(n, d_model, n_heads)
    return replace(cost, mixing=2 * pairs * d_model, memory=n_heads * pairs, path=path)


def sliding_window(
    n: int, d_model: int, n_heads: int, window: int, *, causal: bool = False
) -> Cost:
    """Each query and `window` neighbours, half on each side: O(n · window · d_model).

    The path is O(n / window). Where causal, all neighbours lie before the query, and they are all
    that is kept for the next query.

    Source:
        Vaswani et al. 2017, table 1, "self-attention (restricted)"; Beltagy et al. 2020, §3.1.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.sparse import sliding_window
        >>> cost = sliding_window(n=1001, d_model=512, n_heads=8, window=100)
        >>> cost.path, round(cost.mixing / multi_head(1001, 512, 8).mixing, 3)
        (20, 0.098)
    """
    require_size("n", n)
    require_size("window", window, least=1 if causal else 2)
    before, after = window_reach(window, causal=causal)
    pairs = sum(min(i, before) + 1 + min(n - 1 - i, after) for i in range(n))
    cost = of_pairs(pairs, n, d_model, n_heads, path=max(1, -(-(n - 1) // before)))
    return replace(cost, cache=2 * min(n, window) * d_model) if causal else cost


def sinks(n: int, d_model: int, n_heads: int, window: int, n_sinks: int) -> Cost:
    """A causal window that sees the first n_sinks tokens too: O(n · (window + n_sinks) · d_model).

    The path is that of the window: nothing but sinks is reached through a sink. The cache does not
    grow; `RollingCache` has room for one more token, the one that is being written.

    Source:
        Xiao et al. 2023, §3.2.

    Example:
        >>> from attention.cost.sparse import sinks, sliding_window
        >>> cost = sinks(n=1004, d_model=512, n_heads=8, window=100, n_sinks=4)
        >>> cost.path, sliding_window(1000, 512, 8, 100, causal=True).path
        (10, 10)
        >>> cost.cache == sinks(10**4, 512, 8, 100, 4).cache == 2 * (100 + 4) * 512
        True
    """
    require_size("n", n)
    require_size("window", window)
    require_size("n_sinks", n_sinks, least=0)
    pairs = sum(min(i, window) + 1 + min(max(0, i - window), n_sinks) for i in range(n))
    path = max(1, -(-(n - 1 - n_sinks) // window))
    cost = of_pairs(pairs, n, d_model, n_heads, path=path)
    return replace(cost, cache=2 * min(n, window + n_sinks) * d_model)


def global_tokens(n: int, d_model: int, n_heads: int, n_global: int) -> Cost:
    """All tokens see n_global tokens, and these see all: O(n · n_global · d_model), path 2.

    Source:
        Beltagy et al. 2020, §3.1; Zaheer et al. 2020, §2.

    Example:
        >>> from attention.cost.sparse import global_tokens
        >>> global_tokens(n=1000, d_model=512, n_heads=8, n_global=1).path
        2
    """
    require_size("n", n)
    require_size("n_global", n_global)
    g = min(n_global, n)
    return of_pairs(2 * n * g - g * g, n, d_model, n_heads, path=2 if g < n - 1 else 1)


def random_keys(n: int, d_model: int, n_heads: int, n_random: int) -> Cost:
    """n_random keys drawn for each query: O(n · n_random · d_model). The path depends on the draw.

    The count assumes that no key is drawn twice.

    Source:
        Zaheer et al. 2020, §2.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.sparse import random_keys
        >>> random_keys(1000, 512, 8, n_random=30).mixing / multi_head(1000, 512, 8).mixing
        0.03
    """
    require_size("n", n)
    require_size("n_random", n_random)
    return of_pairs(n * min(n_random, n), n, d_model, n_heads, path=None)


def moba(n: int, d_model: int, n_heads: int, block: int, n_blocks: int) -> Cost:
    """`moba_attention`: O(n · (n_blocks · block + n / block) · d_model).

    The count includes the products with the means of all blocks, and with every key of the chosen
    ones, whether a causal mask hides it or not. The path depends on the data. The means are kept
    beside the keys.

    Source:
        Lu et al. 2025, §2.2.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.sparse import moba
        >>> cost = moba(65_536, 512, 8, block=256, n_blocks=4)
        >>> round(multi_head(65_536, 512, 8).mixing / cost.mixing)
        57
    """
    require_size("n", n)
    require_size("block", block)
    require_size("n_blocks", n_blocks)
    blocks = -(-n // block)
    cost = of_pairs(n * min(n_blocks, blocks) * block, n, d_model, n_heads, path=None)
    means = blocks * d_model
    return replace(cost, mixing=cost.mixing + n * means, cache=cost.cache + means)


def indexed(
    n: int, d_model: int, n_heads: int, top_k: int, n_index_heads: int, d_index: int
) -> Cost:
    """`IndexedAttention`: O(n · top_k · d_model + n² · n_index_heads · d_index).

    Every pair is scored, which takes d_index multiply-adds for each index head, and one to add up
    its product. Only top_k keys of a query are attended to. The path depends on the data. The
    memory is that of the chosen keys' weights, because the scores are made for a few queries at a
    time. Each key's d_index numbers are kept beside the key.

    Source:
        DeepSeek-AI 2025, §2.1.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.sparse import indexed
        >>> sizes = {"top_k": 1024, "n_index_heads": 2, "d_index": 16}
        >>> round(multi_head(65_536, 512, 8).mixing / indexed(65_536, 512, 8, **sizes).mixing)
        20
    """
    require_size("n", n)
    require_size("top_k", top_k)
    require_size("n_index_heads", n_index_heads)
    require_size("d_index", d_index)
    cost = of_pairs(n * min(top_k, n), n, d_model, n_heads, path=None)
    weights = d_model * (n_index_heads * d_index + d_index + n_index_heads)
    return replace(
        cost,
        projections=cost.projections + n * weights,
        mixing=cost.mixing + n * n * n_index_heads * (d_index + 1),
        parameters=cost.parameters + weights,
        cache=cost.cache + n * d_index,
    )


def compressed(
    n: int, d_model: int, n_heads: int, block: int, window: int, top_k: int | None = None
) -> Cost:
    """`compressed_attention`: O(n · (n / block + window) · d_model), or top_k instead of n / block.

    The count includes the products with the entries of all full blocks, whether or not a block has
    ended at the query, or with the top_k that were chosen, and the gates' square matrix, which all
    heads share. It leaves out what chooses, and the two sums that make an entry. The cache keeps
    the entries, a window, and the tokens of a block that is not full. The path is 1, as for dense
    attention, except in two cases: with top_k it depends on the data, and a window of fewer than
    block - 2 tokens has gaps. In both it is None.

    Source:
        DeepSeek-AI 2026 (DeepSeek-V4), §2.3.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.sparse import compressed
        >>> whole, cost = multi_head(65_536, 512, 8), compressed(65_536, 512, 8, 128, 128)
        >>> round(whole.mixing / cost.mixing), round(whole.cache / cost.cache)
        (102, 102)
    """
    require_size("n", n)
    require_size("block", block)
    require_size("window", window)
    if top_k is not None:
        require_size("top_k", top_k)
    entries = n // block
    seen = entries if top_k is None else min(top_k, entries)
    path = 1 if top_k is None and window >= block - 2 else None
    cost = of_pairs(n * (min(window + 1, n) + seen), n, d_model, n_heads, path)
    d_key = d_model // n_heads
    return replace(
        cost,
        projections=cost.projections + n * d_model * d_key,
        parameters=cost.parameters + d_key * (d_key + block),
        cache=2 * d_model * (entries + min(n, max(window, n % block))),
    )


def strided(n: int, d_model: int, n_heads: int, stride: int) -> Cost:
    """The query, the stride keys before it and every stride-th key before those.

    O(n · (stride + n/stride) · d_model): O(n · √n · d_model) where stride ≈ √n. Path 2.

    Source:
        Child et al. 2019, §4.3.

    Example:
        >>> from attention.cost.sparse import strided
        >>> round(strided(4096, 512, 8, stride=64).mixing / strided(1024, 512, 8, stride=32).mixing)
        8
    """
    require_size("n", n)
    require_size("stride", stride)
    pairs = sum(min(i, stride) + 1 + max(0, i // stride - 1) for i in range(n))
    return of_pairs(pairs, n, d_model, n_heads, path=2 if 1 < stride < n - 1 else 1)


def fixed(n: int, d_model: int, n_heads: int, stride: int, summary: int = 1) -> Cost:
    """The query's own row of stride keys up to itself and the last `summary` keys of earlier rows.

    O(n · (stride + summary · n/stride) · d_model). Path 2: a row's last key hands on what it saw.

    Source:
        Child et al. 2019, §4.3.

    Example:
        >>> from attention.cost.sparse import fixed
        >>> round(fixed(4096, 512, 8, stride=64).mixing / fixed(1024, 512, 8, stride=32).mixing)
        8
    """
    require_size("n", n)
    require_summary(stride, summary)
    pairs = sum(i % stride + 1 + i // stride * summary for i in range(n))
    return of_pairs(pairs, n, d_model, n_heads, path=2 if summary < stride < n else 1)
