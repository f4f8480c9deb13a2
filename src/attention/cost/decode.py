"""What a decode step's attention computes and reads, and what a processor makes of that.

A decode step writes one token: in each layer its queries meet every cached row once. Each row is
read from memory, and takes part in one score and one weighted sum for each query head that it
serves. FLOPs over bytes is the arithmetic intensity. It does not depend on the length of the text,
nor on how many texts are written at a time, since each has a cache of its own.

A processor has two limits, FLOPs a second and bytes a second, and their quotient is its ridge. Work
of lower intensity waits for the bytes, and work of higher intensity waits for the arithmetic.

Softmax, the queries, the outputs and the writing of the new token's row are left out, since all of
them are small beside a long cache. Also left out is what passes through the layer's matrices: with
latent attention that includes the products that bring a query to the latent rows, and those that
bring their sum back.
"""

from numbers import Real
from typing import NamedTuple

from attention.arguments import require_size
from attention.cost.caches import CacheSizes, cache_bytes


class Work(NamedTuple):
    """What is computed, and what is read for it.

    Attributes:
        flops: floating-point operations, two for each multiply-add.
        bytes: read from memory.

    Example:
        >>> from attention.cost.decode import Work
        >>> Work(flops=256, bytes=256).intensity  # a query and a key of 128 numbers in 16 bits
        1.0
    """

    flops: int
    bytes: int

    @property
    def intensity(self) -> float:
        """FLOPs for each byte."""
        return self.flops / self.bytes


def decode_step_cost(
    model: CacheSizes, length: int, *, queries: int = 1, bytes_per_number: int = 2
) -> Work:
    """Count the scores and weighted sums of one decode step, and the bytes of cache that they read.

    With keys and values, a row serves n_heads / n_kv_heads query heads, and at two bytes a number
    this ratio is the intensity: 1 for multi-head attention. With latent attention in the absorbed
    form, a row is the key and the value of all heads: they do n_heads · (2 · d_latent + d_rotary)
    multiply-adds on its d_latent + d_rotary numbers.

    Args:
        model: one of `MODELS`, or sizes of your own.
        length: how many tokens the text has. A model with a window reads no more tokens than its
            window has.
        queries: how many tokens pass at once, each of which meets `length` rows: several where a
            draft is checked.
        bytes_per_number: 2 for float16 and bfloat16.

    Returns:
        The work of all layers, for one text.

    Raises:
        ValueError, TypeError: for a length, queries or bytes_per_number that is not a whole number
            above 0.

    Source:
        Shazeer 2019, for what a step reads, and why it is slow; Liu et al. 2024 (DeepSeek-V2),
        §2.1.2 and §2.1.3, for the absorbed form and its rotary key; Leviathan et al. 2023, §2.1,
        for several tokens a step.

    Example:
        >>> from attention.cost.caches import MODELS
        >>> from attention.cost.decode import decode_step_cost
        >>> for name in ("Llama 2 7B", "Llama 2 70B", "Falcon 7B", "DeepSeek-V2"):
        ...     print(f"{name:<11} {decode_step_cost(MODELS[name], 4096).intensity:5.1f}")
        Llama 2 7B    1.0
        Llama 2 70B   8.0
        Falcon 7B    71.0
        DeepSeek-V2 241.8
    """
    require_size("queries", queries)
    read = cache_bytes(model, length, bytes_per_number=bytes_per_number)
    flops = 0
    for kind in model.kinds:
        score = kind.d_latent + kind.d_rotary if kind.d_latent else kind.d_key
        products = kind.n_heads * (score + (kind.d_latent or kind.d_key))
        flops += 2 * queries * kind.layers * kind.kept(length) * products
    return Work(flops, read)


class Processor(NamedTuple):
    """The two limits of a processor.

    Attributes:
        peak: FLOPs a second.
        bandwidth: bytes a second that its memory delivers.
        source: where that was read.

    Example:
        >>> from attention.cost.decode import Processor
        >>> Processor(peak=100e9, bandwidth=20e9, source="a laptop, say").ridge
        5.0
    """

    peak: Real
    bandwidth: Real
    source: str

    @property
    def ridge(self) -> float:
        """The intensity, in FLOPs a byte, at which arithmetic begins to be what takes the time."""
        return self.peak / self.bandwidth

    def attainable(self, intensity: Real) -> Real:
        """FLOPs a second at this intensity: the roofline.

        Source:
            Williams, Waterman and Patterson 2009, "Roofline: An Insightful Visual Performance Model
            for Multicore Architectures".

        Example:
            >>> from attention.cost.decode import H100
            >>> round(H100.ridge), H100.attainable(1) / 1e12, H100.attainable(1000) / 1e12
            (295, 3.35, 989.0)
        """
        return min(self.peak, intensity * self.bandwidth)


# Dense matrix products in bfloat16: the data sheet gives 1,979 "with sparsity", and half without.
H100 = Processor(
    peak=989e12,
    bandwidth=3.35e12,
    source="NVIDIA 2023, H100 SXM",
)
