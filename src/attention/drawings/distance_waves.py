"""A rotary score over the distance: each pair is a wave, and the score is their sum."""

import math
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point

UNIT = 1.5  # the height of 1, one scale for all panels


def distance_waves(
    back: Float[Tensor, " place"],
    height: Float[Tensor, " pair"],
    top: Float[Tensor, " pair"],
    period: Float[Tensor, " pair"],
    trained: int,
) -> Drawing:
    """Draw what each pair adds to a score, by how many places back the key stands, and the sum.

    Args:
        back: places back; below 0 the key lies ahead of the query, where a causal mask hides it.
        height: of each pair's wave.
        top: how many places back the wave of each pair is highest.
        period: its length in places.
        trained: how many distances, from 0 on, training had.

    Example:
        >>> import torch
        >>> from attention.drawings import distance_waves
        >>> one = torch.ones(1)
        >>> distance_waves(torch.arange(-8.0, 24), 3 * one, -2 * one, 20 * one, trained=16)
        Drawing of pair 0 (32,), score (32,)
    """
    waves = height[:, None] * (2 * math.pi * (back - top[:, None]) / period[:, None]).cos()
    values = {f"pair {i}": wave for i, wave in enumerate(waves)} | {"score": waves.sum(dim=0)}
    first, last = float(back[0]), float(back[-1])
    tallest = int(height.argmax())
    peaks = [
        place
        for turn in range(-9, 10)
        if first < (place := float(top[tallest] + turn * period[tallest])) < last
    ]

    def paint(canvas: Canvas) -> Real:
        left = 10 if canvas.narrow else 150
        step = (canvas.width - 14 - left) / (last - first)

        def across(place: Real) -> Real:
            return left + step * (place - first)

        xs = [across(place) for place in back.tolist()]
        y = 40
        lines = []
        for name, wave in values.items():
            high, low = max(float(wave.max()), 4), min(float(wave.min()), -4)
            y += 40 if canvas.narrow else 26
            y += 24 if name == f"pair {tallest}" else 0  # for where its tops are
            lines.append((name, wave, y + UNIT * high))
            y += UNIT * (high - low)
        bottom = y + 8
        here = across(0) - step / 2
        band = here, 38, trained * step, bottom - 38
        canvas.rectangle(*band, "x fill", fill_opacity=0.13)
        canvas.text(here + trained * step / 2, 30, "in training", "bold", size=12)
        canvas.path(f"M{point(here, 38)}V{bottom:.1f}", "cut")
        hidden = ("ahead:", "masked") if canvas.narrow else ("ahead: the mask", "hides it")
        for line, words in enumerate(hidden):
            canvas.text((left + here) / 2, 14 + 16 * line, words, "quiet", size=12)
        later = (here + trained * step + xs[-1]) / 2
        canvas.text(later, 30, "never in training", "quiet", size=12)
        for nth, (name, wave, zero) in enumerate(lines):
            whole = name == "score"
            title = "their sum: the score" if whole else name
            about = "" if whole else f"{period[nth]:,.0f} places long"
            look = "scores of bold" if whole else "bold"
            if canvas.narrow:
                over = zero - UNIT * max(float(wave.max()), 4) - (46 if nth == tallest else 20)
                aside = here + trained * step + 6
                places = (aside, over), (aside + 42, over)
            else:
                places = (6, zero), (6, zero + 16)
            canvas.text(*places[0], title, look, size=12, anchor="start")
            canvas.text(*places[1], about, "quiet", size=12, anchor="start")
            canvas.path(f"M{point(xs[0], zero)}H{xs[-1]:.1f}", "edge")
            color = "scores" if whole else "x"
            curve = zip(xs, wave.tolist(), strict=True)
            d = "L".join(point(x, zero - UNIT * value) for x, value in curve)
            canvas.path(f"M{d}", f"{color} stroke", stroke_width=2 if whole else 1.5)
            canvas.points(name, xs, zero, wave.tolist(), f"{color} fill", unit=UNIT, radius=1.4)
            if nth == tallest:
                for place in peaks:
                    peak = across(place), zero - UNIT * float(height[nth])
                    canvas.arrow(peak[0], peak[1] - 20, peak[0], peak[1] - 4, "mistake")
                    said = f"top at {place:.1f}".replace("-", "−")
                    aside = min(max(peak[0], left + 34), canvas.width - 36)
                    canvas.text(aside, peak[1] - 24, said, "bold", size=11)
        for place in range(-16, round(last) + 1, 16):
            if place >= first:
                number = f"{place}".replace("-", "−")
                canvas.text(across(place), bottom + 16, number, "quiet", size=11)
        canvas.text(canvas.width / 2, bottom + 34, "places back", "quiet", size=12)
        return bottom + 42

    behind, seen = back[back >= 0], values["score"][back >= 0]
    told = "; ".join(
        f"pair {i}, {period[i]:,.0f} places long and {height[i]:.1f} high" for i in range(len(top))
    )
    alt = (
        f"A score by how many places back the key stands, as a sum of waves: {told}. Training had "
        f"0 to {trained - 1} places back. The tallest wave, pair {tallest}, is at its top "
        f"{' and '.join(f'{place:.1f}' for place in peaks)} places back (below 0 is ahead, where "
        f"the mask hides it). Their sum is {seen[0]:.1f} at {behind[0]:.0f} places back, falls to "
        f"{seen.min():.1f} at {behind[seen.argmin()]:.0f}, and is highest, {seen.max():.1f}, at "
        f"{behind[seen.argmax()]:.0f}."
    ).replace(" -", " −")
    return Drawing(paint, alt, values)
