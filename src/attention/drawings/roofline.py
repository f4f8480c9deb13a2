"""The roofline: what a processor attains at each arithmetic intensity, and where work stands."""

import math
from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point

LEAST, MOST = 0.5, 4096.0  # FLOPs a byte, the ends of the axis


def roofline(
    intensity: Float[Tensor, " work"], names: Sequence[str], *, bandwidth: Real, peak: Real
) -> Drawing:
    """Draw FLOPs a second over FLOPs a byte, both on logarithmic axes, and each work as a dot.

    Args:
        intensity: FLOPs a byte, (work,), each between 0.5 and 4,096.
        names: what each is called.
        bandwidth: bytes a second.
        peak: FLOPs a second.

    Source:
        Williams, Waterman and Patterson 2009.

    Example:
        >>> import torch
        >>> from attention.drawings import roofline
        >>> roofline(torch.tensor([1.0, 500.0]), ["decode", "prefill"], bandwidth=1e12, peak=1e14)
        Drawing of attainable (2,)
    """
    ridge = peak / bandwidth
    attained = (intensity.double() * bandwidth).clamp(max=peak) / 1e12  # TFLOP/s
    heights = (attained / (LEAST * bandwidth / 1e12)).log10()  # above the axis, in decades

    def paint(canvas: Canvas) -> Real:
        left, right, top = 14, canvas.width - 14, 56
        line = top + 250
        across = (right - left) / math.log2(MOST / LEAST)
        unit = (line - top) / math.log10(ridge / LEAST)

        def at(per_byte: Real) -> float:
            return left + across * math.log2(per_byte / LEAST)

        roof = [point(left, line), point(at(ridge), top), point(right, top)]
        canvas.text(left, 16, "FLOPs a second", "bold", size=12, anchor="start")
        canvas.path(f"M{'L'.join(roof)}", "x stroke", stroke_width=2)
        canvas.path(f"M{point(at(ridge), top)}V{line}", "quiet edge", stroke_dasharray="3 4")
        canvas.text(right, top - 8, f"peak: {peak / 1e12:.0f} TFLOP/s", size=12, anchor="end")
        canvas.text(at(ridge), top - 24, f"ridge: {ridge:.0f}", "bold", size=12)
        slope = at(2.5), line - unit * math.log10(2.5 / LEAST)
        canvas.text(
            slope[0] - 8, slope[1] - 10, f"{bandwidth / 1e12:g} TB/s", size=12, anchor="end"
        )
        canvas.path(f"M{left},{line}H{right}", "edge")
        for mark in (1, 8, 64, 512, 4096):
            anchor = "end" if mark == MOST else "middle"
            canvas.text(at(mark), line + 16, f"{mark:,}", "quiet", size=12, anchor=anchor)
        canvas.text(right, line + 34, "FLOPs a byte", "bold", size=12, anchor="end")
        xs = [at(per_byte) for per_byte in intensity.tolist()]
        canvas.points("attainable", xs, line, heights.tolist(), "output fill", unit=unit, radius=5)
        for x, height, per_byte, name in zip(
            xs, heights.tolist(), intensity.tolist(), names, strict=True
        ):
            y = line - unit * height
            if per_byte > ridge:
                place, anchor = (x, y + 20), "middle"
            elif 2 * x > canvas.width:
                place, anchor = (x - 10, y), "end"
            else:
                place, anchor = (x + 10, y + 10), "start"
            canvas.text(*place, f"{name}: {per_byte:,.0f}", size=12, anchor=anchor)
        return line + 44

    told = ", ".join(
        f"{name} {per_byte:,.0f} FLOPs a byte and at most {rate:,.3g} TFLOP/s"
        for name, per_byte, rate in zip(names, intensity.tolist(), attained.tolist(), strict=True)
    )
    alt = (
        f"FLOPs a second over FLOPs a byte. A slope, where {bandwidth / 1e12:g} TB/s of memory set "
        f"the limit, rises to the ridge at {ridge:.0f} FLOPs a byte; from there on a flat roof at "
        f"{peak / 1e12:.0f} TFLOP/s. On it, from left to right: {told}."
    )
    return Drawing(paint, alt, {"attainable": heights})
