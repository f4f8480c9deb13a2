"""Rotary positions: turn queries and keys by an angle that grows with their position.

Two components of a query or key are a point in a plane. At position m this point is turned by the
angle m · θ about the origin. A dot product does not change when both points are turned alike, so
the score of a query at position m and a key at position n depends on m − n, and on neither position
by itself. Each pair of components has its own θ: the first pair turns by a radian from one position
to the next, and the last, for a wide d_key, by little more than 1/base.

The turn belongs after the split, because before it the first head would get all the fast turns and
the last head all the slow ones. It also belongs on queries and keys alone, because values carry
what is attended to, not where it is.
"""

from collections.abc import Callable

import torch
from jaxtyping import Complex, Float, Float64
from torch import Tensor, nn

from attention.arguments import (
    require_finite,
    require_function,
    require_shape,
    require_size,
    require_vectors,
)

KEPT = 2048  # positions whose angles a module keeps from the start


class Rotary(nn.Module):
    """Turn q and k by their positions, before their dot product. Nothing is learned.

    Give it to `DotProduct` as its transform. One module may serve all layers. The queries are the
    last n_queries of n_keys positions, aligned as in `causal_mask`. With a cache, `first` is the
    position of the first key that is given, and each key is turned once, before it is kept. There
    is no limit on the length.

    Inputs of half precision are turned in float32 and rounded once. The kept angles are computed
    again when the module moves; after load_state_dict(…, assign=True) on a module made on the meta
    device, call this module's `to_empty`.

    Buffer by name: `kept` (position, d_key), the cosine and the sine of each pair's angle; no
    state_dict holds it. A longer input extends it, to a power of two, so that the next input, or
    the next token, finds its angles there. It never holds more than 2,048 positions, or twice those
    of the longest input if that is more, which is the size of that many keys of one head.

    Args:
        d_key: the width of a head, which must be even because components turn in pairs.
        base: pair i turns by θ = base^(−2i/d_key) radians per position.
        halves: which components are a pair: neighbours, 2i and 2i + 1, as in the paper, or, with
            True, i and i + d_key/2, one from each half, as in the code of GPT-NeoX and of Hugging
            Face's Llama (Meta's code pairs neighbours). Weights work only with the convention that
            they were trained with, unless the rows of `w_q.weight` and `w_k.weight`, and the
            entries of their biases, are put into the order of the other one, head by head.
        angles: a function that maps θ of all pairs, in float64, to other angles, as `llama3_angles`
            and `yarn_angles` do for models that were extended to longer texts.
        length: turned queries and keys are multiplied by it; for YaRN, `yarn_length` gives it.

    Raises:
        ValueError: d_key is odd, or base is not above 0.

    Cost:
        O((query + key) · heads · d_key) operations per call. Neighbours are multiplied as complex
        numbers, in one pass over the memory; pairs from both halves take several passes, and
        several times as long.

    Source:
        Su et al. 2021, §3.2.1 and equation 12 for the complex numbers, §3.2.2 for the angles,
        §3.4.2 and equation 34 for pairs from both halves.

    Example:
        >>> import torch
        >>> from attention import MultiHeadAttention, Rotary
        >>> attention, x = MultiHeadAttention(d_model=8, n_heads=2), torch.randn(1, 1, 8)
        >>> attention.attend.transform = Rotary(d_key=4)
        >>> _, weights = attention(x, torch.cat((x, torch.randn(1, 2, 8), x), dim=1))
        >>> bool((weights[..., 0] == weights[..., 3]).any())  # equal words, another distance
        False
    """

    def __init__(
        self,
        d_key: int,
        base: float = 10000.0,
        *,
        halves: bool = False,
        angles: Callable[[Float64[Tensor, " pairs"]], Float64[Tensor, " pairs"]] | None = None,
        length: float = 1.0,
    ) -> None:
        super().__init__()
        require_size("d_key", d_key)
        if d_key % 2:
            raise ValueError(
                f"d_key={d_key} is odd, and components turn in pairs: one would be left over; "
                "choose n_heads so that d_key = d_model / n_heads is even"
            )
        require_finite("base", base)
        if base <= 0:
            raise ValueError(f"base must be above 0, got {base}")
        require_finite("length", length)
        if angles is not None:
            require_function("angles", angles, "of all angles, as llama3_angles(…) makes one")
        self.d_key, self.base, self.halves = d_key, base, halves
        self.angles, self.length = angles, length
        # Each position's cosines and sines are laid out like the components that they turn.
        self.kept: Tensor
        wide = torch.promote_types(torch.get_default_dtype(), torch.float32)
        kept = self.turns(KEPT).to(wide)
        self.register_buffer("kept", kept, persistent=False)

    def turns(self, length: int) -> Float64[Tensor, "{length} d_key"]:
        """The cosine and the sine of m · θ, for every position m and every pair of components.

        They are in float64, because at position 5000 an angle in float32 is wrong by 2e-4 radians.
        """
        pair = torch.arange(0, self.d_key, 2, dtype=torch.float64)
        theta = self.base ** (-pair / self.d_key)
        if self.angles is not None:
            theta = self.angles(theta)
            require_shape("what angles returns", theta, tuple(pair.shape), "pairs")
        angle = torch.arange(length, dtype=torch.float64)[:, None] * theta
        turns = torch.stack((angle.cos(), angle.sin()), dim=1 if self.halves else 2).flatten(1)
        return turns * self.length

    def turns_up_to(self, length: int) -> Float[Tensor, "_ d_key"]:
        """The turns of this many positions or more: the kept ones, extended if they are too few."""
        if length <= len(self.kept):
            return self.kept
        if torch.compiler.is_compiling():  # an exported program cannot change its buffers' shapes
            return self.turns(length).to(self.kept)
        with torch.inference_mode(False):  # else no later call could take gradients through them
            longer = 1 << (length - 1).bit_length()
            self.kept = self.turns(longer).to(self.kept)
        return self.kept

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        """Move the module, as torch does, and compute the angles again, in float32 at least.

        Otherwise `double` would leave them as exact as float32, and `to_empty` would leave them
        uninitialised.
        """
        super()._apply(fn, recurse)
        dtype = torch.promote_types(self.kept.dtype, torch.float32)
        self.kept = self.turns(len(self.kept)).to(self.kept.device, dtype)
        return self

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        *,
        first: int = 0,
    ) -> tuple[Float[Tensor, "batch heads query d_key"], Float[Tensor, "batch kv_heads key d_key"]]:
        """Turn every query and every key.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, heads, key, d_key).
            first: the position of the first key, or of the first query if there are more queries.

        Raises:
            ValueError: q or k is not d_key wide.
        """
        require_vectors("q", q, "batch heads query d_key", last=self.d_key)
        require_vectors("k", k, "batch heads key d_key", last=self.d_key)
        require_size("first", first, least=0)
        n_queries, n_keys = q.shape[-2], k.shape[-2]
        # The last query and the last key are at the same position.
        length = first + max(n_queries, n_keys)
        turns = self.turns_up_to(length)
        return (
            self.turn(q, turns[length - n_queries : length]),
            self.turn(k, turns[length - n_keys : length]),
        )

    def turn(
        self, x: Float[Tensor, "batch heads seq d_key"], turns: Float[Tensor, "seq d_key"]
    ) -> Float[Tensor, "batch heads seq d_key"]:
        """(a, b) becomes (a·cos − b·sin, a·sin + b·cos), for each pair (a, b) of components."""
        wide = x.to(torch.promote_types(x.dtype, turns.dtype))
        if self.halves or torch.compiler.is_compiling():  # the compiler fuses real products alone
            shape, axis = ((2, -1), -2) if self.halves else ((-1, 2), -1)
            (a, b), (cos, sin) = (y.unflatten(-1, shape).unbind(axis) for y in (wide, turns))
            turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=axis)
        else:  # (a + ib) · (cos + i·sin), the same four products
            turned = torch.view_as_real(as_complex(wide) * as_complex(turns))
        return turned.flatten(-2).to(x.dtype)

    def turn_from(
        self, x: Float[Tensor, "batch heads seq d_key"], first: int
    ) -> Float[Tensor, "batch heads seq d_key"]:
        """Turn queries or keys whose first token is at position `first`.

        This is for a cache that keeps its keys turned: each is turned once, by its own position.
        """
        length = first + x.shape[-2]
        return self.turn(x, self.turns_up_to(length)[first:length])

    def extra_repr(self) -> str:
        return f"d_key={self.d_key}, base={self.base}, halves={self.halves}"


def as_complex(x: Float[Tensor, "*batch d_key"]) -> Complex[Tensor, "*batch pairs"]:
    """Neighbouring components as the real and the imaginary part of one number.

    The result is a view, or a copy where memory holds the pairs in another order or begins in the
    middle of one.
    """
    pairs = x.unflatten(-1, (-1, 2))
    *strides, last = pairs.stride()
    even = all(stride % 2 == 0 for stride in strides) and pairs.storage_offset() % 2 == 0
    if not even or last != 1:
        pairs = pairs.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(pairs)
