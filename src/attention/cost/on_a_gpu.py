"""Attention in the open and in tiles on one GPU: a run of the benchmark, stored with the package.

`python -m benchmarks.on_a_gpu` measures again, where there is a GPU.
"""

import json
from pathlib import Path
from typing import NamedTuple

STORED = Path(__file__).with_name("on_a_gpu.json")


class Pass(NamedTuple):
    """One pass over n tokens.

    Attributes:
        seconds: the median of the runs; None where memory ran out.
        peak_bytes: the memory above the inputs; None likewise.
        tflops: 10¹² FLOPs a second, counted alike for every way: two products over the pairs in the
            forward pass, and seven with the backward pass, since kernels in tiles compute the
            scores twice; half of each under a causal mask. Attention in the open computes six,
            including the hidden half of each.
    """

    seconds: float | None
    peak_bytes: int | None
    tflops: float | None


class Step(NamedTuple):
    """One decode step of 32 query heads.

    Attributes:
        seconds: the median of the runs.
        cache_bytes: the keys and values, read once.
        share_of_bandwidth: those bytes a second, over the GPU's 3.35 TB/s.
    """

    seconds: float
    cache_bytes: int
    share_of_bandwidth: float


class OnAGpu(NamedTuple):
    """One run.

    Attributes:
        device: the GPU.
        setting: torch's version and the sizes, in words.
        passes: by way, n, whether causal, and whether with the backward pass. The ways are "in the
            open" (three steps of torch), "math" (torch's own unfused form), "flash" (torch's
            FlashAttention kernel) and "cudnn" (NVIDIA's).
        steps: by way, cached tokens and KV heads.
    """

    device: str
    setting: str
    passes: dict[tuple[str, int, bool, bool], Pass]
    steps: dict[tuple[str, int, int], Step]


def load_on_a_gpu() -> OnAGpu:
    """Load the stored run.

    Example:
        >>> from attention.cost.on_a_gpu import load_on_a_gpu
        >>> passes = load_on_a_gpu().passes
        >>> flash, in_the_open = (
        ...     passes[way, 16384, True, True] for way in ("flash", "in the open")
        ... )
        >>> in_the_open.peak_bytes > 50 * flash.peak_bytes
        True
    """
    stored = json.loads(STORED.read_text("utf-8"))
    passes = {
        (one["way"], one["n"], one["causal"], one["backward"]): Pass(
            *(one.get(name) for name in Pass._fields)
        )
        for one in stored["passes"]
    }
    steps = {
        (one["way"], one["cached"], one["kv_heads"]): Step(
            one["seconds"], one["cache_bytes"], one["share_of_peak"]
        )
        for one in stored["decode"]
    }
    setting = f"torch {stored['torch']}, {stored['setting']}"
    return OnAGpu(stored["device"], setting, passes, steps)
