"""Softmax step by step: scores, their powers of e, and the shares of the powers' sum."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, tenth


def softmax_steps(scores: Float[Tensor, " key"], labels: Sequence[str]) -> dict[str, Drawing]:
    """Draw scores, their powers and the shares as bars, one of the three lit in each step.

    Args:
        scores: (key,), a few.
        labels: the name of each key.

    Example:
        >>> import torch
        >>> from attention.drawings import softmax_steps
        >>> softmax_steps(torch.tensor([2.0, 1.0, 0.0]), ["a", "b", "c"])["shares"]
        Drawing of scores (3,), powers (3,), shares (3,)
    """
    powers = scores.exp()
    shares = powers / powers.sum()
    values = {"scores": scores, "powers": powers, "shares": shares}
    total = f"{powers.sum():.2f}"
    # A title, its look, and what to see, in two lines.
    panels = (
        ("scores s", "scores", ("any numbers,", "above or below 0")),
        ("e to the power s", "x", ("all above 0: 1 more in score", "is 2.72 times the power")),
        ("shares", "weights", ("each divided by the sum,", f"{total}: together 1")),
    )
    told = "; ".join(
        f"{title} {', '.join(f'{value:.2f}' for value in values[name].tolist())}"
        for name, (title, *_) in zip(values, panels, strict=True)
    )

    def draw(lit: int) -> Drawing:
        def paint(canvas: Canvas) -> Real:
            share = canvas.width if canvas.narrow else canvas.width / 3
            wide, tall = 50, 74 if canvas.narrow else 120
            for nth, (name, (title, look, words)) in enumerate(zip(values, panels, strict=True)):
                left = (0 if canvas.narrow else share * nth) + (share - wide * len(scores)) / 2 + 6
                line = tall + 44 + (tall + 106 if canvas.narrow else 0) * nth
                middle = left + wide * (len(scores) - 0.3) / 2
                with canvas.group("" if nth == lit else "faint"):
                    value = values[name]
                    canvas.text(middle, line - tall - 24, title, f"{look} of bold", size=13)
                    unit = tall / float(value.abs().max())
                    bars = {"unit": unit, "wide": wide, "labels": labels}
                    canvas.bars(name, left, line, value.tolist(), look, **bars)
                    for row, said in enumerate(words):
                        canvas.text(middle, line + 36 + 15 * row, said, "quiet", size=12)
                if nth and not canvas.narrow:
                    x = share * nth
                    canvas.arrow(tenth(x - 14), line - tall / 2, x + 14, line - tall / 2)
            return line + 60

        alt = f"Softmax of {len(scores)} scores: {told}. Lit: {panels[lit][0]}."
        return Drawing(paint, alt, values)

    return {name: draw(nth) for nth, name in enumerate(values)}
