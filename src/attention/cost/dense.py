"""What a layer costs, counted: attention over all keys, and convolution.

Each function takes the sizes of a layer and returns the `Cost` of one sequence passing through it.
Operations are multiply-adds of matrix products, each of which is two floating-point operations in
the counts of papers and of torch's FLOP counter. Softmax, activations, biases and sums are left
out: they grow no faster than what is counted. What table 1 of Vaswani et al. 2017 calls "complexity
per layer" is `mixing`, the work that carries information from one position to another.

The modules `attention.cost.recurrent`, `attention.cost.sparse` and `attention.cost.linear` count
the other mechanisms.
"""

from dataclasses import dataclass, replace

from attention.arguments import require_divides, require_n_heads, require_size


@dataclass(frozen=True)
class Cost:
    """The cost of one layer for one sequence.

    Attributes:
        projections: multiply-adds that every position needs for itself, such as W_q to W_o.
        mixing: multiply-adds between positions, such as scores and weighted sums.
        parameters: how many numbers are learned.
        memory: how many numbers the mixing holds at a time, beyond its input and output.
        cache: how many numbers of the past are kept to compute the next position.
        steps: how many operations must wait for each other.
        path: how many layers, or steps within one, a signal needs between the two positions that
            are farthest apart; None where that depends on the data or on chance.

    Source:
        Vaswani et al. 2017, §4 and table 1, for mixing, steps and path.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> cost = multi_head(n=100, d_model=512, n_heads=8)
        >>> cost.mixing, cost.operations, cost.flops
        (10240000, 115097600, 230195200)
    """

    projections: int
    mixing: int
    parameters: int
    memory: int
    cache: int
    steps: int
    path: int | None

    @property
    def operations(self) -> int:
        """All multiply-adds."""
        return self.projections + self.mixing

    @property
    def flops(self) -> int:
        """Floating-point operations, two for each multiply-add."""
        return 2 * self.operations


def multi_head(n: int, d_model: int, n_heads: int) -> Cost:
    """`MultiHeadAttention` of n tokens: O(n² · d_model) mixing, 1 step, path 1.

    Source:
        Vaswani et al. 2017, §4 and table 1.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> multi_head(2000, 512, 8).mixing / multi_head(1000, 512, 8).mixing
        4.0
    """
    return grouped_query(n, d_model, n_heads, n_heads)


def grouped_query(n: int, d_model: int, n_heads: int, n_kv_heads: int) -> Cost:
    """`multi_head` with n_kv_heads heads of keys and values: the same mixing, a smaller cache.

    The cache takes cache · layers · (bytes per number) bytes: 2 · n_kv_heads · d_key numbers for
    each token of each layer. n_kv_heads = 1 is multi-query attention.

    Source:
        Shazeer 2019, §3; Ainslie et al. 2023, §2.

    Example:
        >>> from attention.cost.dense import grouped_query, multi_head
        >>> multi_head(4096, 512, 8).cache / grouped_query(4096, 512, 8, n_kv_heads=2).cache
        4.0
    """
    require_size("n", n)
    require_n_heads(d_model, n_heads)
    require_divides("n_kv_heads", n_kv_heads, "n_heads", n_heads)
    d_kv = n_kv_heads * (d_model // n_heads)
    outputs = 2 * (d_model + d_kv)  # columns of w_q, w_o, w_k and w_v
    return Cost(
        projections=n * d_model * outputs,
        mixing=2 * n * n * d_model,
        parameters=d_model * outputs + outputs,
        memory=n_heads * n * n,
        cache=2 * n * d_kv,
        steps=1,
        path=1,
    )


def latent(
    n: int,
    d_model: int,
    n_heads: int,
    d_latent: int,
    *,
    d_rotary: int = 0,
    d_query_latent: int | None = None,
    d_key: int | None = None,
) -> Cost:
    """`LatentAttention` of n tokens: d_latent + d_rotary numbers kept for each.

    The count is for a whole sequence, in the plain form. `latent_step` counts the absorbed one. The
    gains of the layer's norms are left out.

    Source:
        Liu et al. 2024, §2.1.2, §2.1.3, appendix C and table 1.

    Example:
        >>> from attention.cost.dense import latent, multi_head
        >>> multi_head(4096, 512, 8).cache / latent(4096, 512, 8, d_latent=64).cache
        16.0
        >>> sizes = {"d_rotary": 64, "d_query_latent": 1536, "d_key": 128}  # DeepSeek-V2
        >>> latent(1, 5120, 128, d_latent=512, **sizes).cache
        576
    """
    require_size("n", n)
    if d_key is None:
        require_n_heads(d_model, n_heads)
        d_key = d_model // n_heads
    for name, size in (("d_model", d_model), ("n_heads", n_heads), ("d_latent", d_latent)):
        require_size(name, size)
    require_size("d_key", d_key)
    require_size("d_rotary", d_rotary, least=0)
    d_query = d_model
    weights = d_model * (d_latent + d_rotary)  # w_down and w_k_rotary
    if d_query_latent is not None:
        require_size("d_query_latent", d_query_latent)
        d_query = d_query_latent
        weights += d_model * d_query  # w_q_down
    rotary, heads = n_heads * d_rotary, n_heads * d_key
    weights += d_query * (heads + rotary) + 2 * d_latent * heads + heads * d_model
    return Cost(
        projections=n * weights,
        mixing=n * n * (2 * heads + rotary),
        parameters=weights + heads + rotary + d_model,  # the biases of queries and output
        memory=n_heads * n * n,
        cache=n * (d_latent + d_rotary),
        steps=1,
        path=1,
    )


def latent_step(
    new: int,
    n: int,
    n_heads: int,
    d_latent: int,
    *,
    d_key: int,
    d_rotary: int = 0,
    absorbed: bool = True,
) -> int:
    """The multiply-adds of `LatentAttention` between n latent rows and `new` queries.

    In the absorbed form each query goes through w_k and each head's sum goes through w_v, at
    d_key · d_latent each, and a pair of query and row takes 2 · d_latent + d_rotary. In the plain
    form each *row* goes through both matrices, and a pair takes 2 · d_key + d_rotary. So decoding,
    with one query beside many rows, is cheaper in the absorbed form. Prefill, with as many queries
    as rows, is cheaper in the plain form where d_latent is above d_key.

    Args:
        new: how many tokens ask; their rows are among the n.
        n: how many rows there are.
        n_heads: how many heads.
        d_latent: the width of a latent row.
        d_key: the width of a head's key without its rotary part, and of its value.
        d_rotary: the width of the rotary key.
        absorbed: which of the two forms.

    Returns:
        The multiply-adds, without those of the other projections, which are the same in both forms.

    Raises:
        ValueError: n is below new.

    Source:
        Liu et al. 2024, §2.1.2 and §2.1.3.

    Example:
        >>> from attention.cost.dense import latent_step
        >>> sizes = {"n_heads": 128, "d_latent": 512, "d_key": 128, "d_rotary": 64}  # DeepSeek-V2
        >>> for new in (1, 4096):
        ...     plain, absorbed = (
        ...         latent_step(new, 4096, **sizes, absorbed=form) for form in (False, True)
        ...     )
        ...     print(new, plain > absorbed)
        1 True
        4096 False
    """
    for name, size in (("new", new), ("n", n), ("n_heads", n_heads), ("d_latent", d_latent)):
        require_size(name, size)
    require_size("d_key", d_key)
    require_size("d_rotary", d_rotary, least=0)
    if new > n:
        raise ValueError(f"new={new} tokens are among the n={n}, so n must be at least {new}")
    passed, width = (new, d_latent) if absorbed else (n, d_key)
    return n_heads * (passed * 2 * d_key * d_latent + new * n * (2 * width + d_rotary))


def tiled(n: int, d_model: int, n_heads: int, tile: int) -> Cost:
    """`tiled_attention` of n tokens (FlashAttention-2): as much work as `multi_head`, O(n) memory.

    The memory is one tile of scores, a maximum and a sum for each query of a tile, and the
    log-sum-exp of every query. The tiles of keys are taken one after the other.

    Source:
        Dao 2023, §3.1.

    Example:
        >>> from attention.cost.dense import multi_head, tiled
        >>> multi_head(4096, 512, 8).memory, tiled(4096, 512, 8, tile=256).memory
        (134217728, 561152)
    """
    cost = multi_head(n, d_model, n_heads)
    require_size("tile", tile)
    rows = min(tile, n)
    return replace(cost, memory=n_heads * (rows * rows + 2 * rows + n), steps=-(-n // tile))


def convolutional(n: int, d_model: int, kernel_size: int) -> Cost:
    """A convolution with a bias over n positions, each output computed from kernel_size of them.

    The path is the number of layers with which the last output reaches the first input, where every
    layer reaches kernel_size times as far as the layer before (dilated, causal).

    Source:
        Vaswani et al. 2017, §4 and table 1.

    Example:
        >>> from attention.cost.dense import convolutional
        >>> convolutional(n=81, d_model=512, kernel_size=3).path
        4
    """
    require_size("n", n)
    require_size("d_model", d_model)
    require_size("kernel_size", kernel_size, least=2)
    layers = 1
    while kernel_size**layers < n:
        layers += 1
    return Cost(
        projections=0,
        mixing=n * kernel_size * d_model * d_model,
        parameters=kernel_size * d_model * d_model + d_model,
        memory=0,
        cache=(kernel_size - 1) * d_model,
        steps=1,
        path=layers,
    )
