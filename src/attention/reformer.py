"""Reformer: self-attention within hash buckets, with one projection for queries and keys.

A layer of the Reformer differs from multi-head attention in two ways. Queries and keys come from
one projection, so that a token falls into one bucket as query and as key; sharing leaves no room to
ask for another thing than one offers. And attention is LSH attention (`lsh_attention`): a token
attends to the tokens whose vectors have a similar direction, found by hashing and sorting in
O(n log n) steps. The reversible layers of the paper save memory between layers and are no part of
attention.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention.arguments import check_n_heads, check_size, check_vectors
from attention.heads import merge_heads, split_heads
from attention.lsh import lsh_attention


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
    check_vectors("x", x, "batch heads seq d_key")
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
        check_n_heads(d_model, n_heads)
        check_size("n_rounds", n_rounds)
        check_size("chunk_length", chunk_length)
        self.n_buckets = n_buckets if isinstance(n_buckets, tuple) else (n_buckets,)
        for n in self.n_buckets:
            check_size("n_buckets", n, least=2)
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
        check_vectors("x", x, "batch seq d_model", last=self.d_model)
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
