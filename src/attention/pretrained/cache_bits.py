"""A published model whose keys and values are kept in a few bits.

Whole numbers and a scale stand in for what the cache would hold. The axis along which numbers share
a scale decides how few bits are enough.
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention.arguments import require_size
from attention.cached.grouped_query import grouped_attention
from attention.positions.rotary import Rotary
from attention.pretrained.mistakes import BASE, D_KEY, with_attend
from attention.transformer.decoder_only import DecoderOnly

ROW, COLUMN = -1, -2  # the axis along which numbers share a scale
TOGETHER = 32  # tokens of a column that share one


def symmetric(x: Float[Tensor, "... seq d_key"], bits: int, axis: int) -> Float[Tensor, "..."]:
    """Round to multiples of a scale, from −(2ᵇ⁻¹ − 1) to 2ᵇ⁻¹ − 1 times the scale.

    Args:
        x: keys or values (…, seq, d_key).
        bits: of a stored number, 2 or more.
        axis: along which numbers share a scale: `ROW` for each token, `COLUMN` for each component.

    Example:
        >>> import torch
        >>> from attention.pretrained.cache_bits import ROW, symmetric
        >>> symmetric(torch.tensor([[4.0, -3.0, 1.9]]), bits=2, axis=ROW)
        tensor([[ 4., -4.,  0.]])
    """
    require_size("bits", bits, least=2)
    most = 2 ** (bits - 1) - 1
    scale = x.abs().amax(axis, keepdim=True).clamp(min=1e-12) / most
    return (x / scale).round() * scale


def asymmetric(x: Float[Tensor, "... seq d_key"], bits: int, axis: int) -> Float[Tensor, "..."]:
    """Round to one of 2ᵇ levels between the least and the largest number.

    Args:
        x: keys or values (…, seq, d_key).
        bits: of a stored number, 2 or more.
        axis: along which numbers share a least and a largest number.

    Source:
        Liu et al. 2024 (KIVI), §3.1.

    Example:
        >>> import torch
        >>> from attention.pretrained.cache_bits import ROW, asymmetric
        >>> asymmetric(torch.tensor([[5.0, -1.0, 2.1]]), bits=2, axis=ROW)
        tensor([[ 5., -1.,  3.]])
    """
    require_size("bits", bits, least=2)
    least = x.amin(axis, keepdim=True)
    scale = (x.amax(axis, keepdim=True) - least).clamp(min=1e-12) / (2**bits - 1)
    return ((x - least) / scale).round() * scale + least


def in_groups(x: Float[Tensor, "... seq d_key"], bits: int, axis: int) -> Float[Tensor, "..."]:
    """Round as `asymmetric` does, 32 tokens at a time; what does not fill a group stays as it is.

    A scale for each column needs the tokens that share it, so a cache closes a group before it
    rounds it. Here all of a text is read at once: a query within a group meets rounded keys where a
    cache would still have the exact ones.

    Args:
        x: keys (…, seq, d_key).
        bits: of a stored number, 2 or more.
        axis: `COLUMN`.

    Source:
        Liu et al. 2024 (KIVI), §3.3, with groups of 32 and no more recent tokens kept exact.

    Example:
        >>> import torch
        >>> from attention.pretrained.cache_bits import COLUMN, in_groups
        >>> x = torch.randn(40, 2)
        >>> torch.equal(in_groups(x, 2, COLUMN)[32:], x[32:])
        True
    """
    full = x.shape[-2] // TOGETHER * TOGETHER
    groups = x[..., :full, :].unflatten(-2, (-1, TOGETHER))
    closed = asymmetric(groups, bits, axis).flatten(-3, -2) if full else x[..., :0, :]
    return torch.cat([closed, x[..., full:, :]], dim=-2)


class RoundedCache(nn.Module):
    """Attention like SmolLM2's, over keys and values that were rounded after the keys' turn.

    It is called as `DotProduct` is.

    Args:
        of_keys: rounds the turned keys (batch, kv_heads, key, d_key).
        of_values: rounds the values.
    """

    def __init__(
        self, of_keys: Callable[[Tensor], Tensor], of_values: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.turn, self.of_keys, self.of_values = Rotary(D_KEY, BASE), of_keys, of_values

    def forward(
        self,
        q: Float[Tensor, "batch heads query d_key"],
        k: Float[Tensor, "batch kv_heads key d_key"],
        v: Float[Tensor, "batch kv_heads key d_key"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        causal: bool = True,
        need_weights: bool = True,
    ) -> tuple[
        Float[Tensor, "batch heads query d_key"], Float[Tensor, "batch heads query key"] | None
    ]:
        """Turn, round, and attend.

        Args:
            q: (batch, heads, query, d_key).
            k: (batch, kv_heads, key, d_key).
            v: (batch, kv_heads, key, d_key).
            mask: as for `grouped_attention`.
            causal: as for `grouped_attention`.
            need_weights: as for `grouped_attention`.
        """
        q, k = self.turn(q, k)
        options = {"causal": causal, "need_weights": need_weights}
        return grouped_attention(q, self.of_keys(k), self.of_values(v), mask, **options)


# By name: how keys and values share their scales.
SCALES = {
    "rows, symmetric": ((symmetric, ROW), (symmetric, ROW)),
    "rows, asymmetric": ((asymmetric, ROW), (asymmetric, ROW)),
    "keys by column": ((in_groups, COLUMN), (asymmetric, ROW)),
}


def with_bits(model: DecoderOnly, bits: int, scales: str) -> DecoderOnly:
    """Copy a model, with a cache of a few bits in all its layers; the weights are shared.

    Args:
        model: SmolLM2-135M; it stays as it is.
        bits: of a stored number.
        scales: which numbers share one, of `SCALES`.

    Raises:
        ValueError: there are no such scales, or fewer bits than 2 when the model reads.

    Example:
        >>> import torch
        >>> from attention import DecoderOnly
        >>> from attention.pretrained.cache_bits import with_bits
        >>> model = DecoderOnly(50, 128, 2, 64, n_layers=1, n_kv_heads=1)
        >>> with_bits(model, 4, "keys by column")(torch.tensor([[3, 1, 4]]))[0].shape
        torch.Size([1, 3, 50])
    """
    if scales not in SCALES:
        raise ValueError(f"scales={scales!r} must be one of {', '.join(map(repr, SCALES))}")
    of_keys, of_values = (
        partial(rounded, bits=bits, axis=axis) for rounded, axis in SCALES[scales]
    )
    return with_attend(partial(RoundedCache, of_keys, of_values), model)
