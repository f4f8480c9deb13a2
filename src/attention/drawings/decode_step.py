"""Steps of a model on one processor: how long the reading takes, and how long the arithmetic."""

import math
from collections.abc import Sequence
from numbers import Real

import torch
from jaxtyping import Int64
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing

PARTS = {"weights": "x", "cache": "k"}  # and their looks
HIGH = 18  # of a strip
DOWN = 132  # from a step to the next


def decode_step(
    bytes_read: Int64[Tensor, "step 2"],
    flops: Int64[Tensor, "step 2"],
    steps: Sequence[str],
    *,
    bandwidth: Real,
    peak: Real,
) -> Drawing:
    """Draw for each step the time of reading weights and cache above the time of computing.

    Both go on side by side, so that a step takes as long as the longer of its two strips.

    Args:
        bytes_read: of the weights and of the cache, (step, 2).
        flops: with the weights and with the cache, (step, 2).
        steps: what each is called.
        bandwidth: bytes a second.
        peak: FLOPs a second.

    Example:
        >>> import torch
        >>> from attention.drawings import decode_step
        >>> read, flops = torch.tensor([[6000, 3000]]), torch.tensor([[8000, 2000]])
        >>> decode_step(read, flops, ["decode, one text"], bandwidth=1e6, peak=1e7)
        Drawing of read 0 (2,), compute 0 (2,)
    """
    reading, computing = 1000 * bytes_read.double() / bandwidth, 1000 * flops.double() / peak  # ms
    longest = float(torch.stack([reading, computing]).sum(-1).max())
    waits, told, briefly = [], [], []
    for nth in range(len(steps)):
        times = float(reading[nth].sum()), float(computing[nth].sum())
        waits.append("the memory" if times[0] > times[1] else "the arithmetic")
        read = zip(PARTS, bytes_read[nth].tolist(), strict=True)
        read = [(prefixed(size, "B"), part) for part, size in read if size]
        computes = f"computes {prefixed(int(flops[nth].sum()), 'FLOP')}: {times[1]:.2f} ms"
        for lines, what in (
            (told, " and ".join(f"{size} of {part}" for size, part in read)),
            (briefly, ", ".join(f"{size} {part}" for size, part in read)),
        ):
            lines.append((f"reads {what}: {times[0]:.2f} ms", computes))

    def paint(canvas: Canvas) -> Real:
        x = 10
        lines, size = (briefly, 11) if canvas.narrow else (told, 12)
        unit = (canvas.width - 2 * x) / longest
        for nth, step in enumerate(steps):
            y = 20 + DOWN * nth
            canvas.text(x, y, step, "bold", anchor="start")
            if canvas.narrow:
                canvas.text(x, y + 16, f"waits for {waits[nth]}", size=12, anchor="start")
            else:
                right = canvas.width - x
                canvas.text(right, y, f"waits for {waits[nth]}", size=12, anchor="end")
            y += 36 if canvas.narrow else 22
            for key, times, words in (
                ("read", reading[nth], lines[nth][0]),
                ("compute", computing[nth], lines[nth][1]),
            ):
                canvas.text(x, y, words, "quiet", size=size, anchor="start")
                strip = canvas.strip(
                    *(f"{key} {nth}", x, y + 5, times.tolist(), list(PARTS.values())),
                    unit=unit,
                    high=HIGH,
                )
                for part, box in zip(PARTS, strip, strict=True):
                    if box.width > 52:
                        canvas.text(box.middle[0], box.y + 13, part, size=12)
                y += HIGH + 22
        return DOWN * len(steps) + (12 if canvas.narrow else 0)

    alt = " ".join(
        f"{step[0].upper()}{step[1:]}: it {' and '.join(words)}, so it waits for {what}."
        for step, words, what in zip(steps, told, waits, strict=True)
    )
    values = {
        f"{key} {nth}": times[nth]
        for nth in range(len(steps))
        for key, times in (("read", reading), ("compute", computing))
    }
    return Drawing(paint, alt, values)


def prefixed(number: int, unit: str) -> str:
    """A number in three digits with its unit: 16,000,000,000 and "B" as "16 GB"."""
    thousands = min(int(math.log10(max(number, 1))) // 3, 4)
    return f"{number / 1000**thousands:.3g} {' kMGT'[thousands].strip()}{unit}"
