"""Softmax as a fraction: a mask that comes after it strikes a key above the line and not below."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Bool, Float
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing


def mask_after_softmax(
    scores: Float[Tensor, " key"], mask: Bool[Tensor, " key"], tokens: Sequence[str]
) -> Drawing:
    """Draw the weight of the key with the largest allowed score, masked first and masked late.

    Args:
        scores: of one query, (key,).
        mask: True = may attend.
        tokens: of the keys.

    Example:
        >>> import torch
        >>> from attention.drawings import mask_after_softmax
        >>> mask = torch.tensor([True, False])
        >>> mask_after_softmax(torch.zeros(2), mask, ["birds", "<pad>"])
        Drawing of top first (1,), sum first (2,), top late (1,), sum late (2,)
    """
    powers = (scores - scores.max()).exp()
    allowed = powers * mask
    best = int(allowed.argmax())
    top = powers[best : best + 1]
    values = {"top first": top, "sum first": allowed, "top late": top, "sum late": powers}
    looks = ["weights" if may else "x faint" for may in mask.tolist()]
    first, late = (float(top / below.sum()) for below in (allowed, powers))

    def paint(canvas: Canvas) -> Real:
        start, high = (8, 112) if canvas.narrow else (184, 96)
        room = canvas.width - start - (74 if canvas.narrow else 110)
        unit = room / float(powers.sum())
        y = 30 if canvas.narrow else 14
        for name, below, weight in (("first", allowed, first), ("late", powers, late)):
            heading = "mask, then softmax" if name == "first" else "softmax, then mask"
            if name == "late":
                canvas.mistake(
                    start + 8 if canvas.narrow else 16, y + (-15 if canvas.narrow else 28)
                )
            left = 24 if name == "late" and canvas.narrow else 0
            at = (start + left, y - 10) if canvas.narrow else (30, y + 33)
            canvas.text(*at, heading, "bold", size=12.5, anchor="start")
            above = canvas.strip(f"top {name}", start, y, top.tolist(), ["weights"], unit=unit)
            name_parts(canvas, above, [tokens[best]], top)
            canvas.path(f"M{start - 4},{y + 29}H{start + room + 4:.1f}", "edge")
            parts = canvas.strip(f"sum {name}", start, y + 34, below.tolist(), looks, unit=unit)
            name_parts(canvas, parts, tokens, below)
            canvas.text(
                start + room + 12, y + 34, f"= {weight:.2f}", "bold", size=15, anchor="start"
            )
            if name == "late":
                hidden = [part for part, may in zip(parts, mask.tolist(), strict=True) if not may]
                paint_struck(canvas, hidden, y)
            y += high
        said = "each strip is as long as e to the power of its key’s score"
        canvas.text(start, y, said, "quiet", size=11, anchor="start")
        return y + 12

    def paint_struck(canvas: Canvas, hidden: Sequence[Box], y: Real) -> None:
        for part in hidden:
            canvas.rectangle(part.x, y, part.width, 24, "edge", stroke_dasharray="3 3")
        x, right = hidden[0].x, hidden[-1].right
        canvas.text((x + right) / 2, y + 16, "struck here …", "quiet", size=12)
        words = "… and still in the sum"
        canvas.text((x + right) / 2, y + 74, words, "mistake of bold", size=12)

    def told(below: Float[Tensor, " key"]) -> str:
        return " + ".join(f"{power:.2f}" for power in below.tolist() if power > 0.005)

    alt = (
        f"The weight of “{tokens[best]}” as a fraction of strips, powers of e. Mask, then softmax: "
        f"{float(top):.2f} over {told(allowed)} = {first:.2f}. Softmax, then mask, a mistake: "
        f"{float(top):.2f} over {told(powers)} = {late:.2f}, for the hidden keys are struck above "
        "the line and stay in the sum below it."
    )
    return Drawing(paint, alt, values)


def name_parts(
    canvas: Canvas, parts: Sequence[Box], names: Sequence[str], powers: Float[Tensor, " part"]
) -> None:
    """Name the parts that are wide enough for it, with their numbers where there is room."""
    for part, name, power in zip(parts, names, powers.tolist(), strict=True):
        full = f"{name} {power:.2f}"
        fitting = [words for words in (full, name) if part.width > 6.6 * len(words)]
        if fitting:
            canvas.text(part.middle[0], part.y + 16, fitting[0], size=12)
