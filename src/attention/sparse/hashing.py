"""LSH attention, the heart of the Reformer: tokens attend to the tokens of their own hash bucket.

Queries and keys are the same vectors, the keys scaled to length 1. A locality-sensitive hash (LSH)
puts vectors of similar direction into the same bucket, and since the largest scores dominate a
softmax, little is lost where a token attends within its bucket alone. The tokens are sorted by
bucket and cut into chunks, and each chunk attends to itself and to the one before: scores of shape
(chunk, 2 · chunk) take the place of (n, n). What one round of hashing separates another may bring
together, so several rounds are made and joined: the result is softmax attention over the union of
what they find. Sorting takes O(n log n) steps, all else O(n).

Reformer: self-attention within hash buckets, with one projection for queries and keys.

A layer of the Reformer differs from multi-head attention in two ways. Queries and keys come from
one projection, so that a token falls into one bucket as query and as key; sharing leaves no room to
ask for another thing than one offers. And attention is LSH attention (`lsh_attention`): a token
attends to the tokens whose vectors have a similar direction, found by hashing and sorting in
O(n log n) steps. The reversible layers of the paper save memory between layers and are no part of
attention.
"""

import math
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from attention.arguments import (
    require_n_heads,
    require_padding_mask,
    require_same_sequences,
    require_size,
    require_vectors,
)
from attention.heads import merge_heads, split_heads

NOWHERE = -2  # the address of a key that nobody finds


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

    In a round, the tokens are sorted by bucket, then by position, and cut into chunks. A token
    finds those of its bucket that are in its chunk or in the one before. It attends to all that it
    finds in any round, once to each, and to itself only where it finds nothing else. The unit
    length of the keys stands in for the factor 1/√d_key, which is not applied.

    Args:
        query: (batch, heads, seq, d_key).
        value: (batch, heads, seq, d_value).
        buckets: (batch, heads, rounds, seq), numbers from 0 on.
        mask: boolean, True = may attend, the same for all queries: (batch, 1, 1, seq), as
            `padding_mask` makes it. A token that finds nothing, not itself either, gets output 0.
        chunk_length: twice the mean size of a bucket in the paper; what does not fit is not found.
        causal: whether the tokens after a token are hidden from it.

    Returns:
        The output, (batch, heads, seq, d_value).

    Raises:
        ValueError: for shapes that do not fit and for a mask that differs between queries.

    Cost:
        For each head and each of r rounds, O(n log n) to sort, O(n · chunk_length · (d_key + r))
        time and O(n · chunk_length) memory.

    Source:
        Kitaev et al. 2020, §2 and appendix A, equations 13 to 16. Where the paper lowers a token's
        score for itself by 10⁵, it is so low here that it counts for nothing beside any other.

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
    (batch, heads, seq, _), rounds = query.shape, buckets.shape[-2]
    if buckets.ndim != 4 or (*buckets.shape[:2], buckets.shape[3]) != (batch, heads, seq):
        raise ValueError(
            f"buckets must have shape (batch, heads, rounds, seq) = ({batch}, {heads}, rounds, "
            f"{seq}), got {tuple(buckets.shape)}; lsh_buckets(query, rotations) makes them"
        )
    order = buckets.argsort(dim=-1, stable=True)  # (batch, heads, rounds, seq): who stands where,
    place = order.argsort(dim=-1)  # and where everybody stands
    # One number for bucket and chunk: token i finds token j where address i - address j is 0 or 1.
    address = buckets * (seq // chunk_length + 3) + place // chunk_length
    address_of_key = address
    if mask is not None:
        require_padding_mask(mask, (batch, heads, seq, seq), "LSH attention")
        address_of_key = address.masked_fill(~mask, NOWHERE)
    position = torch.arange(seq, device=query.device).expand(batch, heads, 1, seq)
    asks = torch.cat([position, address], dim=2)  # (batch, heads, 1 + rounds, seq)
    answers = torch.cat([position, address_of_key], dim=2)
    key = F.normalize(query, dim=-1)

    outputs, totals = [], []
    for r in range(rounds):
        cut = partial(_chunks, order=order[:, :, r], chunk_length=chunk_length)
        # (batch, heads, 1, chunk, place in it) and (batch, heads, 1, chunk, place in both chunks)
        i, *address_i = cut(asks.mT).movedim(4, 0).contiguous().unsqueeze(-1)
        j, *address_j = _with_previous(cut(answers.mT)).movedim(4, 0).contiguous().unsqueeze(-2)
        finds = [(a == b) | (a == b + 1) for a, b in zip(address_i, address_j, strict=True)]
        seen = finds[r] & (j <= i) if causal else finds[r]
        scores = cut(query) @ _with_previous(cut(key)).mT  # (batch, heads, chunk, place, 2 · place)
        if rounds > 1:  # each of the rounds that find j counts it 1 / times
            times = sum(found.byte() for found in finds).clamp_(min=1)
            scores -= times.to(scores.dtype).log_()
        low = torch.finfo(scores.dtype).min
        scores = scores.masked_fill_(i == j, low / 2).masked_fill_(~seen, low)
        # Softmax by hand, over the memory of the scores, since its total is needed too.
        largest = scores.amax(-1, keepdim=True).detach()
        exps = scores.sub_(largest).exp_()
        total = exps.sum(-1, keepdim=True)
        output = exps @ _with_previous(cut(value)) / total
        output = output.masked_fill(~seen.any(-1, keepdim=True), 0.0)
        back = place[:, :, r, :, None]
        outputs.append(output.flatten(2, 3).gather(2, back.expand_as(value)))
        totals.append((largest + total.log()).flatten(2, 3).gather(2, back))
    # A round counts as much as the sum of its exponentials: together they are one softmax.
    shares = torch.softmax(torch.stack(totals), dim=0)
    return (shares * torch.stack(outputs)).sum(0)


def _chunks(x: Tensor, order: Tensor, chunk_length: int) -> Tensor:
    """(batch, heads, seq, width) -> (batch, heads, chunk, place, width), sorted.

    The last chunk is filled up with NOWHERE: what stands in vectors there is never looked at.
    """
    x = x.gather(2, order[..., None].expand(-1, -1, -1, x.shape[-1]))
    x = F.pad(x, (0, 0, 0, -x.shape[2] % chunk_length), value=NOWHERE)
    return x.unflatten(2, (-1, chunk_length))


def _with_previous(x: Tensor) -> Tensor:
    """Each chunk behind the one before it; before the first there is nothing to find."""
    return torch.cat([F.pad(x, (0, 0, 0, 0, 1, 0), value=NOWHERE)[:, :, :-1], x], dim=3)


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
        buckets (batch, heads, rounds, seq), numbers from 0 to 2 · half - 1. No gradient flows
        through them.

    Raises:
        ValueError: for shapes that do not fit.

    Cost:
        O(n · d_key · half) for each head and round.

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
    if rotations.ndim != 3 or rotations.shape[1] != x.shape[-1]:
        raise ValueError(
            f"rotations must have shape (rounds, d_key, half) with d_key={x.shape[-1]}, "
            f"got {tuple(rotations.shape)}"
        )
    rotated = x.detach()[:, :, None] @ rotations  # (batch, heads, rounds, seq, half)
    return torch.cat([rotated, -rotated], dim=-1).argmax(dim=-1)


class ReformerAttention(nn.Module):
    """Multi-head LSH self-attention.

    Parameters by name: `w_qk`, `w_v` and `w_o`, each (d_model, d_model) with a bias. The rotations
    are drawn once and stay: a buffer of shape (n_rounds, d_key, n_buckets / 2), saved with the
    weights, so that the same input always gives the same output.

    Args:
        d_model, n_heads, bias: as for `MultiHeadAttention`.
        n_buckets: an even number. The paper takes 2 · n / chunk_length for n tokens, so that
            hashing costs O(n²); two even numbers, (a, b), are a · b buckets at the cost of a + b.
        n_rounds: how many times the tokens are hashed, by other rotations each time.
        chunk_length: how many sorted tokens attend to each other and to as many before them.
        causal: whether the tokens after a token are hidden from it.
        generator: where the rotations come from; torch's global generator unless given.

    Raises:
        ValueError: for sizes that do not fit.

    Source:
        Kitaev et al. 2020, §2.

    Example:
        >>> import torch
        >>> from attention import ReformerAttention
        >>> module = ReformerAttention(8, 2, n_buckets=4, n_rounds=2, chunk_length=16)
        >>> module(torch.zeros(3, 50, 8)).shape
        torch.Size([3, 50, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_buckets: int | tuple[int, int],
        n_rounds: int,
        chunk_length: int,
        causal: bool = False,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        require_n_heads(d_model, n_heads)
        require_size("n_rounds", n_rounds)
        require_size("chunk_length", chunk_length)
        self.n_buckets = n_buckets if isinstance(n_buckets, tuple) else (n_buckets,)
        for n in self.n_buckets:
            require_size("n_buckets", n, least=2)
            if n % 2:
                raise ValueError(
                    "n_buckets must be even, one for each direction and one for its opposite, "
                    f"got {n}"
                )
        self.d_model, self.n_heads, self.chunk_length = d_model, n_heads, chunk_length
        self.causal = causal
        self.w_qk = nn.Linear(d_model, d_model, bias=bias)
        self.w_v = nn.Linear(d_model, d_model, bias=bias)
        self.w_o = nn.Linear(d_model, d_model, bias=bias)
        shape = (n_rounds, d_model // n_heads, sum(self.n_buckets) // 2)
        self.register_buffer("rotations", torch.randn(shape, generator=generator))

    def forward(
        self, x: Float[Tensor, "batch seq d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch seq d_model"]:
        """Attend within buckets: x (batch, seq, d_model) -> the same shape.

        mask says which tokens are no padding, (batch, 1, 1, seq), and errors are as for
        `lsh_attention`.
        """
        require_vectors("x", x, "batch seq d_model", last=self.d_model)
        qk, v = (split_heads(w(x), self.n_heads) for w in (self.w_qk, self.w_v))
        buckets = 0  # one digit after the other, where n_buckets is two numbers
        for rotations in self.rotations.split([n // 2 for n in self.n_buckets], dim=-1):
            buckets = buckets * 2 * rotations.shape[-1] + lsh_buckets(qk, rotations)
        attended = lsh_attention(
            qk, v, buckets, mask, chunk_length=self.chunk_length, causal=self.causal
        )
        return self.w_o(merge_heads(attended))

    def extra_repr(self) -> str:
        rounds, n_buckets = len(self.rotations), math.prod(self.n_buckets)
        return f"n_buckets={n_buckets}, n_rounds={rounds}, chunk_length={self.chunk_length}"
