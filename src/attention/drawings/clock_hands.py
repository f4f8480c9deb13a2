"""The positional encoding as clocks: each pair of its columns is one hand."""

import math
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point, tenth


def clock_hands(pe: Float[Tensor, "position d_model"]) -> Drawing:
    """Draw the hand that each pair of columns is, at every position.

    A sine is how far its hand reaches to the right, the cosine after it how far up: at angle 0 a
    hand stands at twelve.

    Args:
        pe: the positional encoding, (position, d_model).

    Example:
        >>> from attention.drawings import clock_hands
        >>> from attention.embedding import sines_and_cosines
        >>> clock_hands(sines_and_cosines(6, 8))
        Drawing of hand 0 (6, 2), hand 1 (6, 2), hand 2 (6, 2), hand 3 (6, 2)
    """
    length, d_model = pe.shape
    hands = {f"hand {i}": pe[:, 2 * i : 2 * i + 2] for i in range(d_model // 2)}

    turns = [round(math.atan2(*hand[1].tolist()), 4) for hand in hands.values()]

    def paint(canvas: Canvas) -> Real:
        left = 0 if canvas.narrow else 130
        across = (canvas.width - left) / length
        radius = 0.39 * min(across, 76)
        above = 26 if canvas.narrow else 0
        down = 2 * radius + 14 + above
        for pos in range(length):
            at = f"{pos}" if canvas.narrow else f"position {pos}"
            canvas.text(left + (pos + 0.5) * across, 32 if canvas.narrow else 16, at, size=12)
        if canvas.narrow:
            canvas.text(canvas.width / 2, 14, "position", "quiet", size=12)
        for i, (name, hand) in enumerate(hands.items()):
            top = (40 if canvas.narrow else 28) + i * down + above
            middle = top + radius
            columns, speed = f"columns {2 * i} and {2 * i + 1}", f"{turns[i]:g} radian a step"
            if canvas.narrow:
                canvas.text(8, top - 9, name, "bold", size=12, anchor="start")
                canvas.text(58, top - 9, f"{columns}, {speed}", "quiet", size=12, anchor="start")
            else:
                canvas.text(8, middle - 12, name, "bold", anchor="start")
                canvas.text(8, middle + 5, columns, "quiet", size=12, anchor="start")
                canvas.text(8, middle + 21, speed, "quiet", size=12, anchor="start")
            feet = [(left + (pos + 0.5) * across, middle) for pos in range(length)]
            for x, y in feet:
                r = tenth(radius)
                around = f"a{r},{r} 0 1 1 {2 * r},0a{r},{r} 0 1 1 {-2 * r},0"
                canvas.path(f"M{point(x - r, y)}{around}M{point(x, y - r)}v4", "edge")
            canvas.vectors(name, feet, hand, "x", unit=0.9 * radius)
        return (40 if canvas.narrow else 28) + len(hands) * down

    ends = "; ".join(
        f"{name}, which turns by {turn:g} radian a step, has sine {hand[-1, 0]:.2f} and cosine "
        f"{hand[-1, 1]:.2f}"
        for turn, (name, hand) in zip(turns, hands.items(), strict=True)
    )
    alt = (
        f"A row of clocks for each pair of columns, a clock for each position from 0 to "
        f"{length - 1}. At position 0 every hand stands at twelve. At position {length - 1} {ends}."
    )
    return Drawing(paint, alt, hands)
