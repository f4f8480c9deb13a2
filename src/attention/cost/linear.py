"""What attention costs where it is approximated in time that grows more slowly than n².

This module counts, as `attention.cost.dense` does, the cost of linear attention, decay and the
delta rule, random features (Performer and Random Feature Attention), Linformer and LSH attention
(Reformer). The projections W_q to W_o are those of multi-head attention, except in the Reformer,
where queries and keys share one.
"""

from dataclasses import replace

from attention.arguments import require_size
from attention.cost.dense import Cost, multi_head


def linear(n: int, d_model: int, n_heads: int) -> Cost:
    """Linear attention with φ = elu + 1: O(n · d_model · d_key), two products with a small state.

    The state of a head, (d_key + 1) · d_key numbers with its normaliser, is all that the next token
    of a causal layer needs of the past. A bidirectional layer takes 1 step for a whole sequence; as
    a recurrence, a layer takes n.

    Source:
        Katharopoulos et al. 2020, §3.2 and §3.3.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.linear import linear
        >>> linear(n=4096, d_model=512, n_heads=8).cache, multi_head(4096, 512, 8).cache
        (33280, 4194304)
    """
    cost = multi_head(n, d_model, n_heads)
    return with_features(cost, n, d_model, n_heads, d_model // n_heads)


def decay(n: int, d_model: int, n_heads: int, chunk: int = 64) -> Cost:
    """Causal linear attention with decay: O(n · d_model · (chunk + d_key)).

    Within a chunk, half of the work makes the weights and half makes the sums; outside, half reads
    the state and half writes it. The state of a head, d_key² numbers without a normaliser, is all
    that the next token needs of the past. The chunks are taken one after the other. One constant α
    for each head is assumed, as in RetNet: nothing is learned or computed for it.

    Source:
        Sun et al. 2023, §2.1.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.linear import decay
        >>> decay(n=4096, d_model=512, n_heads=8).mixing / multi_head(4096, 512, 8).mixing
        0.03125
        >>> decay(n=4096, d_model=512, n_heads=8).cache
        32768
    """
    require_size("chunk", chunk)
    cost, d_key = multi_head(n, d_model, n_heads), d_model // n_heads
    state = n_heads * d_key * d_key
    return replace(
        cost,
        mixing=2 * d_model * (pairs_in_chunks(n, chunk) + n * d_key),
        memory=n_heads * min(chunk, n) ** 2 + state,
        cache=state,
        steps=-(-n // chunk),
    )


def gated_delta_rule(n: int, d_model: int, n_heads: int, chunk: int = 64) -> Cost:
    """`GatedDeltaNetAttention`: `decay`, half as much again, and a triangular system per chunk.

    Beyond what decay takes, it needs the products of a chunk's keys with each other and with the
    state, and the solution of the system, which counts as half a product of two matrices. α and β
    are two projections to n_heads numbers.

    Source:
        Yang, Kautz and Hatamizadeh 2024, §3.3.

    Example:
        >>> from attention.cost.linear import decay, gated_delta_rule
        >>> gated_delta_rule(4096, 512, 8).mixing / decay(4096, 512, 8).mixing
        1.623046875
    """
    cost, d_key = decay(n, d_model, n_heads, chunk), d_model // n_heads
    pairs = pairs_in_chunks(n, chunk)
    return replace(
        cost,
        projections=cost.projections + 2 * n * d_model * n_heads,
        mixing=cost.mixing + d_model * (pairs + n * d_key + (pairs - n) // 2),
        parameters=cost.parameters + 2 * n_heads * (d_model + 1) + n_heads,
    )


def pairs_in_chunks(n: int, chunk: int) -> int:
    """How many pairs of tokens share a chunk; the last chunk may be shorter.

    Source:
        This book's count.

    Example:
        >>> from attention.cost.linear import pairs_in_chunks
        >>> pairs_in_chunks(n=7, chunk=3)  # 9 + 9 + 1
        19
    """
    return n // chunk * chunk**2 + (n % chunk) ** 2


def random_features(n: int, d_model: int, n_heads: int, n_features: int) -> Cost:
    """Linear attention on n_features random features: O(n · d_model · n_features).

    Besides the two products with the state there are those with the random matrix, which has a row
    for each feature. Performer multiplies the queries by it once and the keys twice: first it looks
    for the largest value of each feature, then it makes the features. Random Feature Attention
    makes two features, a sine and a cosine, from each row, and multiplies once, so it takes
    2 · n · d_model · n_features fewer multiply-adds.

    Source:
        Choromanski et al. 2020, §2 (Performer); Peng et al. 2021, §3.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.linear import random_features
        >>> random_features(4096, 512, 8, 256).mixing / multi_head(4096, 512, 8).mixing < 0.158
        True
    """
    require_size("n_features", n_features)
    cost = with_features(multi_head(n, d_model, n_heads), n, d_model, n_heads, n_features)
    return replace(cost, mixing=cost.mixing + 3 * n * d_model * n_features)


def with_features(cost: Cost, n: int, d_model: int, n_heads: int, n_features: int) -> Cost:
    """The cost of a layer whose queries and keys become n_features numbers in every head.

    The features are made for one chunk of tokens at a time, so they need no more memory however
    long the sequence is. They are left out; the state is counted.

    Source:
        This book's count.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.linear import with_features
        >>> with_features(multi_head(100, 8, 2), 100, 8, 2, n_features=4).mixing
        8000
    """
    state = n_heads * n_features * (d_model // n_heads + 1)  # φ(K)ᵀ · V and the sum of φ(K)
    return replace(
        cost,
        # φ(K)ᵀ · V and φ(Q) times that; and the sum of φ(K), as a product with a column of ones
        mixing=2 * n * n_features * (d_model + n_heads),
        memory=state,
        cache=state,
    )


def linformer(
    n: int, d_model: int, n_heads: int, proj_len: int, *, max_length: int | None = None
) -> Cost:
    """`Linformer`: O(n · proj_len · d_model), and two more matrices of max_length columns.

    Half of the work mixes keys and values, and half attends to the mixtures. max_length is n unless
    given.

    Source:
        Wang et al. 2020, §4 and table 1.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.linear import linformer
        >>> linformer(4096, 512, 8, proj_len=256).mixing / multi_head(4096, 512, 8).mixing
        0.125
    """
    require_size("proj_len", proj_len)
    cost, columns = multi_head(n, d_model, n_heads), n if max_length is None else max_length
    require_size("max_length", columns, least=n)
    return replace(
        cost,
        mixing=4 * n * proj_len * d_model,
        parameters=cost.parameters + 2 * proj_len * columns,
        memory=n_heads * n * proj_len + 2 * proj_len * d_model,
        cache=2 * proj_len * d_model,  # sums, to which the next key and value are added
    )


def reformer(
    n: int, d_model: int, n_heads: int, *, n_buckets: int, n_rounds: int, chunk_length: int
) -> Cost:
    """`ReformerAttention`: O(n · n_rounds · d_model · (chunk_length + n_buckets)), and a sort.

    With n_buckets = 2 · n / chunk_length, as in the paper, hashing alone is O(n²). The memory is
    that of one round's scores; hashes and the outputs of the rounds are left out.

    The sort compares but does not multiply, so it adds no operations here. It takes log₂ n steps,
    which is what Wang et al. 2020, table 1, count. Which tokens meet depends on their vectors, and
    so does the path.

    Source:
        Kitaev et al. 2020, §2 and table 1.

    Example:
        >>> from attention.cost.dense import multi_head
        >>> from attention.cost.linear import reformer
        >>> sizes = dict(n_buckets=128, n_rounds=4, chunk_length=64)
        >>> reformer(4096, 512, 8, **sizes).mixing / multi_head(4096, 512, 8).mixing
        0.15625
    """
    require_size("n_buckets", n_buckets, least=2)
    require_size("n_rounds", n_rounds)
    require_size("chunk_length", chunk_length)
    cost = multi_head(n, d_model, n_heads)
    pairs = -(-n // chunk_length) * chunk_length * 2 * chunk_length
    return replace(
        cost,
        projections=cost.projections * 3 // 4,
        mixing=n_rounds * d_model * (n * n_buckets // 2 + 2 * pairs),
        parameters=cost.parameters * 3 // 4,
        memory=n_heads * pairs,
        steps=max(1, (n - 1).bit_length()),
        path=None,
    )
