"""LSH attention, the heart of the Reformer: tokens attend to the tokens of their own hash bucket.

Queries and keys are the same vectors, the keys scaled to length 1. A locality-sensitive hash (LSH)
puts vectors of similar direction into the same bucket, and since the largest scores dominate a
softmax, little is lost where a token attends within its bucket alone. The tokens are sorted by
bucket and cut into chunks, and each chunk attends to itself and to the one before: scores of shape
(chunk, 2 · chunk) take the place of (n, n). What one round of hashing separates another may bring
together, so several rounds are made and joined: the result is softmax attention over the union of
what they find. Sorting takes O(n log n) steps, all else O(n).
"""

from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from attention.arguments import check_padding_mask, check_same_sequences, check_size, check_vectors

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
    check_vectors("query", query, "batch heads seq d_key")
    check_vectors("value", value, "batch heads seq d_value")
    check_same_sequences(query, query, value)
    check_size("chunk_length", chunk_length)
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
        check_padding_mask(mask, (batch, heads, seq, seq), "LSH attention")
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
