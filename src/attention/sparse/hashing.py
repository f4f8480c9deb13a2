"""LSH attention and the Reformer: each token attends to tokens in its own hash bucket.

A locality-sensitive hash (LSH) puts vectors of similar direction into the same bucket. The largest
scores dominate a softmax, so little is lost if a token attends only within its bucket. Queries and
keys are the same vectors, except that the keys are scaled to length 1. The tokens are sorted by
bucket and cut into chunks, and each chunk attends to itself and to the one before, so scores of
shape (chunk, 2 · chunk) replace those of shape (n, n). One round of hashing separates some similar
tokens, and another round may bring them together. So the tokens are hashed several times, and the
result is softmax attention over the union of what the rounds show.

A layer of the Reformer differs from multi-head attention in two ways. First, queries and keys come
from one projection, so that a token falls into one bucket as query and as key; a token then cannot
ask for anything other than what it offers. Second, attention is LSH attention. The reversible
layers of the paper save memory between layers and are not part of attention.

Given the buckets, sorting takes O(n log n) steps and everything else takes O(n · chunk_length).
Hashing takes O(n · n_buckets) products with a column. That is O(n²) where n_buckets grows with n,
as in the paper, and O(n · √n) where the number of buckets is the product of two numbers, (a, b)
with a ≈ b. With digits of a fixed size, as many as the number of buckets requires, hashing takes
O(n log n). So the paper's O(n log n) is the cost of the sort, and may be that of the hash as well.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    can_be_read,
    require_dtype,
    require_dtype_of,
    require_n_heads,
    require_padding_mask,
    require_same_sequences,
    require_size,
    require_vectors,
)
from attention.heads import merge, split
from attention.precision import summed_in_float32

NOWHERE = -2  # the address of a key that no query sees
MOST_ROUNDS = 255  # a byte counts the rounds in which a query sees a key


def lsh_buckets(
    x: Float[Tensor, "batch heads seq d_key"], rotations: Float[Tensor, "rounds d_key half"]
) -> Int[Tensor, "batch heads rounds seq"]:
    """argmax([x · R; -x · R]): which of 2 · half random vectors has the largest product with x.

    Two hashes read as the digits of one number, `lsh_buckets(x, a) * n_b + lsh_buckets(x, b)`, make
    n_a · n_b buckets at the cost of n_a + n_b.

    Args:
        x: (batch, heads, seq, d_key).
        rotations: R, (rounds, d_key, half), independent normal numbers; one matrix for each round,
            the same for all heads.

    Returns:
        The buckets, numbers from 0 to 2 · half - 1. No gradient flows through them.

    Raises:
        ValueError: for shapes that do not fit.

    Cost:
        For each head, O(rounds · n · d_key · half) time and O(n · half) memory, because only one
        round's products are held at a time.

    Source:
        Kitaev et al. 2020, §2, "Locality sensitive hashing", after Andoni et al. 2015.

    Example:
        >>> import torch
        >>> from attention import lsh_buckets
        >>> x = torch.tensor([[2.0, 0], [3, 1], [-1, 0], [0, -5]])[None, None]
        >>> lsh_buckets(x, torch.eye(2)[None])  # 0 and 1 are the two axes, 2 and 3 their opposites
        tensor([[[[0, 0, 2, 3]]]])
    """
    require_vectors("x", x, "batch heads seq d_key")
    require_vectors("rotations", rotations, "rounds d_key half")
    require_dtype("rotations", rotations, "x", x.dtype)
    if rotations.shape[0] == 0 or rotations.shape[1] != x.shape[-1]:
        raise ValueError(
            f"rotations must have shape (rounds, d_key, half) with d_key={x.shape[-1]}, "
            f"got {tuple(rotations.shape)}"
        )
    return hash_vectors(x, rotations)


def hash_vectors(
    x: Float[Tensor, "batch heads seq d_key"], rotations: Float[Tensor, "rounds d_key half"]
) -> Int[Tensor, "batch heads rounds seq"]:
    """`lsh_buckets` without its argument checks."""
    # Round by round, so that no round holds the products of another.
    return torch.stack([largest_product(x.detach() @ rotation) for rotation in rotations], dim=2)


def largest_product(rotated: Float[Tensor, "*batch half"]) -> Int[Tensor, "*batch"]:
    """argmax([rotated; -rotated]), without making the second half."""
    largest, along = rotated.max(dim=-1)
    smallest, against = rotated.min(dim=-1)
    return torch.where(largest >= -smallest, along, against + rotated.shape[-1])


def require_buckets(buckets: Tensor, batch: int, heads: int, seq: int) -> None:
    """Require a number from 0 on for each token and round."""
    way_out = "lsh_buckets(query, rotations) makes them"
    if not isinstance(buckets, Tensor):
        raise TypeError(f"buckets must be a tensor, got {type(buckets).__name__}; {way_out}")
    if buckets.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"buckets must be int64, got {buckets.dtype}; {way_out}")
    shape = tuple(buckets.shape)
    if buckets.ndim != 4 or (*shape[:2], shape[3]) != (batch, heads, seq):
        raise ValueError(
            f"buckets must have shape (batch, heads, rounds, seq) = ({batch}, {heads}, rounds, "
            f"{seq}), got {shape}; {way_out}"
        )
    if not 1 <= shape[2] <= MOST_ROUNDS:
        raise ValueError(f"buckets has {shape[2]} rounds, and can have 1 to {MOST_ROUNDS}")
    if can_be_read(buckets):
        least, largest = (x.item() for x in buckets.aminmax())
        if least < 0:
            raise ValueError(f"buckets are numbers from 0 on, got {least}; {way_out}")
        if largest >= 2**31:  # an address is a bucket times the number of chunks
            raise ValueError(f"buckets are numbers below 2**31, got {largest}; {way_out}")


def lsh_attention(
    query: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    buckets: Int[Tensor, "batch heads rounds seq"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    chunk_length: int,
    causal: bool = False,
) -> Float[Tensor, "batch heads seq d_value"]:
    """softmax(query · keyᵀ) · value within buckets, where key = query / ‖query‖.

    In a round, the tokens are sorted by bucket, then by position, and cut into chunks. A token sees
    the tokens of its bucket that are in its chunk or in the one before. It attends once to each
    token that it sees in any round, and to itself only where it sees nothing else. The unit length
    of the keys stands in for the factor 1/√d_key, which is not applied.

    Args:
        query: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        buckets: (batch, heads, rounds, seq), numbers from 0 on.
        mask: boolean, True = may attend, the same for all queries: (batch, 1, 1, seq), as
            `padding_mask` makes it. A hidden token is sorted after all others, so that none of
            their outputs depends on it. A token that sees nothing, not even itself, gets output 0.
        chunk_length: twice the mean size of a bucket in the paper. A token does not see those
            tokens of its bucket that lie outside its own chunk and the one before.
        causal: whether the tokens after a token are hidden from it. Their contents never reach it.
            But all tokens are sorted together, as in the authors' code, so the buckets of later
            tokens move the edges of the chunks, and thereby affect which earlier tokens it sees.

    Returns:
        The output, one vector for each token.

    Raises:
        ValueError: for shapes that do not fit and for a mask that differs between queries.

    Cost:
        For each head and each of r rounds, O(n log n) time to sort and O(n · chunk_length · (d_key
        + d_value + r)) time to attend. O(n · (chunk_length + r · d_value)) memory, for the scores
        of one round and the outputs of all rounds, which are joined at the end. With gradients the
        scores of all rounds are kept, which takes O(n · r · (chunk_length + d_value)). A key that a
        query sees in several rounds counts once, and for this the addresses of all rounds are
        compared. A package that counts the key once for each round takes half to two thirds of the
        time.
        torch.export takes one length at a time: how many chunks are computed follows from it.

    Source:
        Kitaev et al. 2020, §2 and appendix A, equations 13 to 16. Where the paper lowers a token's
        score for itself by 10⁵, here that score is so low that it counts for nothing beside any
        other.

    Example:
        >>> import torch
        >>> from attention import lsh_attention
        >>> query = torch.tensor([[2.0, 0], [0, 2], [2, 0], [0, 2]])[None, None]
        >>> value = torch.tensor([[1.0], [2], [3], [4]])[None, None]
        >>> buckets = torch.tensor([0, 1, 0, 1])[None, None, None]
        >>> lsh_attention(query, value, buckets, chunk_length=4).flatten()
        tensor([3., 4., 1., 2.])
    """
    require_vectors("query", query, "batch heads seq d_key")
    require_vectors("value", value, "batch heads seq d_value")
    require_same_sequences(query, query, value)
    require_size("chunk_length", chunk_length)
    batch, heads, seq, _ = query.shape
    require_buckets(buckets, batch, heads, seq)
    if mask is not None:
        require_padding_mask(mask, (batch, heads, seq, seq), "LSH attention")
    return attend_in_buckets(query, value, buckets, mask, chunk_length=chunk_length, causal=causal)


@summed_in_float32
def attend_in_buckets(
    query: Float[Tensor, "batch heads seq d_key"],
    value: Float[Tensor, "batch heads seq d_value"],
    buckets: Int[Tensor, "batch heads rounds seq"],
    mask: Bool[Tensor, "..."] | None,
    *,
    chunk_length: int,
    causal: bool,
) -> Float[Tensor, "batch heads seq d_value"]:
    """`lsh_attention` without its argument checks."""
    batch, heads, rounds, seq = buckets.shape
    chunk_length = min(chunk_length, seq)
    sorted_by = buckets  # hidden tokens come last, so that they take no position among the others
    if mask is not None:
        sorted_by = buckets.masked_fill(~mask, torch.iinfo(buckets.dtype).max)
    order = sorted_by.argsort(dim=-1, stable=True)  # in each round a permutation of the tokens
    rank = order.argsort(dim=-1)  # and its inverse
    # One number for bucket and chunk: token i sees token j where address i - address j is 0 or 1.
    address = buckets.long() * (seq // chunk_length + 3) + rank // chunk_length
    address_of_key = address if mask is None else address.masked_fill(~mask, NOWHERE)
    position = torch.arange(seq, device=query.device).expand(batch, heads, 1, seq)
    asking = torch.cat([position, address], dim=2)  # (batch, heads, 1 + rounds, seq)
    offered = torch.cat([position, address_of_key], dim=2)
    key = F.normalize(query, dim=-1)

    outputs, totals = [], []
    for r in range(rounds):
        cut = partial(sorted_chunks, order=order[:, :, r], chunk_length=chunk_length)
        output, total = attend_in_round(r, cut, query, key, value, asking, offered, causal=causal)
        back = rank[:, :, r, :, None]
        outputs.append(output.flatten(2, 3).gather(2, back.expand_as(value)))
        totals.append(total.flatten(2, 3).gather(2, back))
    outputs = torch.stack(outputs)  # under the same name, so that the single ones are freed
    # A round counts as much as the sum of its exponentials: together they are one softmax.
    shares = torch.softmax(torch.stack(totals), dim=0)
    return (shares * outputs).sum(0)


def attend_in_round(
    r: int,
    cut: Callable[[Tensor], Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    asking: Int[Tensor, "batch heads _ seq"],
    offered: Int[Tensor, "batch heads _ seq"],
    *,
    causal: bool,
) -> tuple[Tensor, Tensor]:
    """The output of round r in its sorted chunks, and log Σ exp(score) of each query."""
    # (batch, heads, chunk, chunk_length, 1) and (batch, heads, chunk, 1, 2 · chunk_length)
    i, *address_i = cut(asking.mT).movedim(4, 0).contiguous().unsqueeze(-1)
    j, *address_j = with_previous(cut(offered.mT)).movedim(4, 0).contiguous().unsqueeze(-2)
    scores = cut(query) @ with_previous(cut(key)).mT
    seen = sees(address_i[r], address_j[r])
    if len(address_i) > 1:  # each of the rounds in which i sees j counts it 1 / times
        times = torch.zeros_like(seen, dtype=torch.uint8)
        for addresses in zip(address_i, address_j, strict=True):
            times += sees(*addresses).view(torch.uint8)
        scores -= times.clamp_(min=1).to(scores.dtype).log_()
    if causal:
        seen &= j <= i
    low = torch.finfo(scores.dtype).min
    scores.masked_fill_(i == j, low / 2).masked_fill_(~seen, low)
    # Softmax by hand, in the memory of the scores, because its total is needed too.
    largest = scores.amax(-1, keepdim=True).detach()
    exps = scores.sub_(largest).exp_()
    total = exps.sum(-1, keepdim=True)
    output = exps @ with_previous(cut(value)) / total
    output = output.masked_fill(~seen.any(-1, keepdim=True), 0.0)
    return output, largest + total.log()


def sees(address_i: Tensor, address_j: Tensor) -> Tensor:
    """Whether token i sees token j: the same bucket, and the same chunk or the one before."""
    return (address_i == address_j).logical_or_(address_i == address_j + 1)


def sorted_chunks(x: Tensor, order: Tensor, chunk_length: int) -> Tensor:
    """(batch, heads, seq, width) -> (batch, heads, chunk, chunk_length, width), sorted.

    NOWHERE fills up the last chunk; no query looks at what vectors hold there.
    """
    x = x.gather(2, order[..., None].expand(-1, -1, -1, x.shape[-1]))
    x = F.pad(x, (0, 0, 0, -x.shape[2] % chunk_length), value=NOWHERE)
    return x.unflatten(2, (-1, chunk_length))


def with_previous(x: Tensor) -> Tensor:
    """Each chunk preceded by the one before it, and the first chunk by NOWHERE."""
    return torch.cat([F.pad(x, (0, 0, 0, 0, 1, 0), value=NOWHERE)[:, :, :-1], x], dim=3)


class ReformerAttention(nn.Module):
    """Multi-head LSH self-attention.

    Parameters by name: `w_qk`, `w_v` and `w_o`, each (d_model, d_model) with a bias. The rotations
    are drawn once and kept, in a buffer of shape (n_rounds, d_key, n_buckets / 2) that is saved
    with the weights and shared by all heads, so that the same input always gives the same output.
    The authors' code (Trax) draws them afresh at every step, for every head and sentence, so that
    what one draw separates another may bring together.

    Args:
        d_model, n_heads, bias: as for `MultiHeadAttention`.
        n_buckets: an even number. The paper takes 2 · n / chunk_length for n tokens, so that
            hashing costs O(n²). Two even numbers, (a, b), give a · b buckets at the cost of a + b;
            with a ≈ b hashing costs O(n · √n) time, and memory as for `lsh_buckets`.
        n_rounds: how many times the tokens are hashed, with different rotations each time.
        chunk_length: how many sorted tokens attend to each other and to the same number before
            them.
        generator: where the rotations come from; torch's global generator unless given.

    Raises:
        ValueError: for sizes that do not fit.

    Source:
        Kitaev et al. 2020, §2.

    Example:
        >>> import torch
        >>> from attention import ReformerAttention
        >>> module = ReformerAttention(8, 2, n_buckets=4, n_rounds=2, chunk_length=16)
        >>> output, weights = module(torch.zeros(3, 50, 8), causal=True)
        >>> output.shape, weights
        (torch.Size([3, 50, 8]), None)
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_buckets: int | tuple[int, int],
        n_rounds: int,
        chunk_length: int,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
        require_size("n_rounds", n_rounds)
        if n_rounds > MOST_ROUNDS:
            raise ValueError(f"n_rounds must be at most {MOST_ROUNDS}, got {n_rounds}")
        require_size("chunk_length", chunk_length)
        self.n_buckets = n_buckets if isinstance(n_buckets, tuple) else (n_buckets,)
        if not self.n_buckets:
            raise ValueError("n_buckets must be an even number or two of them, got ()")
        for n in self.n_buckets:
            require_size("n_buckets", n, least=2)
            if n % 2:
                raise ValueError(
                    "n_buckets must be even, one for each direction and one for its opposite, "
                    f"got {n}"
                )
        self.d_model, self.n_heads, self.chunk_length = d_model, n_heads, chunk_length
        self.w_qk = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        shape = (n_rounds, d_model // n_heads, sum(self.n_buckets) // 2)
        self.register_buffer("rotations", torch.randn(shape, generator=generator))

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch seq d_model"], None]:
        """Attend within buckets, as `MultiHeadAttention.forward` does; the weights are None.

        This method takes no key, because a token is hashed into a bucket once, as query and as key.

        Args:
            x: (batch, seq, d_model).
            mask: which tokens are not padding, (batch, 1, 1, seq), as for `lsh_attention`.
            causal: whether the tokens after a token are hidden from it.
            need_weights: changes nothing: no weights are made.

        Raises:
            ValueError, TypeError: as `lsh_attention` does.
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        require_dtype_of(self, x=x)
        batch, seq, _ = x.shape
        if mask is not None:
            require_padding_mask(mask, (batch, self.n_heads, seq, seq), "LSH attention")
        qk, v = (split(w(x), self.n_heads) for w in (self.w_qk, self.w_v))
        buckets = 0  # one digit after the other, where n_buckets is two numbers
        for rotations in self.rotations.split([n // 2 for n in self.n_buckets], dim=-1):
            buckets = buckets * 2 * rotations.shape[-1] + hash_vectors(qk, rotations)
        attended = attend_in_buckets(
            qk, v, buckets, mask, chunk_length=self.chunk_length, causal=causal
        )
        return self.w_o(merge(attended)), None

    def extra_repr(self) -> str:
        rounds, n_buckets = len(self.rotations), math.prod(self.n_buckets)
        return f"n_buckets={n_buckets}, n_rounds={rounds}, chunk_length={self.chunk_length}"
