"""Rotary positions as two clocks: a query's hand and a key's, and the angle between them."""

import math
from collections.abc import Sequence
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point, tenth

RADIUS = 66


def two_clocks(
    q: Float[Tensor, " 2"],
    k: Float[Tensor, " 2"],
    theta: float,
    places: Sequence[tuple[int, int]],
) -> dict[str, Drawing]:
    """Draw one pair of a query and of a key, turned by their places, and both laid on each other.

    The dashed hand is where each would stand at place 0.

    Args:
        q: one pair of components of a query.
        k: the same pair of a key.
        theta: by how much a hand turns from one place to the next, in radians.
        places: of the query and of the key, one step for each pair of places.

    Example:
        >>> import torch
        >>> from attention.drawings import two_clocks
        >>> q, k = torch.tensor([2.0, 1.0]), torch.tensor([1.0, 3.0])
        >>> two_clocks(q, k, 0.1, [(5, 3), (7, 5)])["query at 7, key at 5"]
        Drawing of query (1, 2), key (1, 2), query again (1, 2), key again (1, 2)
    """
    unit = 0.92 * RADIUS / max(float(q.norm()), float(k.norm()))

    def draw(m: int, n: int) -> Drawing:
        query, key = turned(q, m * theta), turned(k, n * theta)
        product = f"{query @ key:z.4f}".replace("-", "−")
        ends = math.atan2(query[1], query[0]), math.atan2(key[1], key[0])
        between = abs(math.remainder(ends[1] - ends[0], 2 * math.pi))
        back = m - n
        distance = f"{abs(back)} places {'back' if back > 0 else 'ahead'}" if back else "here"

        def paint(canvas: Canvas) -> Real:
            share = canvas.width / (2 if canvas.narrow else 3)
            first, second = (share / 2, 112), (share * 1.5, 112)
            third = (canvas.width / 2, 342) if canvas.narrow else (share * 2.5, 112)
            for (x, y), title, look in (
                (first, f"query at {m}", "q of bold"),
                (second, f"key at {n}", "k of bold"),
                (third, "laid on each other", "bold"),
            ):
                canvas.text(x, y - RADIUS - 18, title, look)
                r = RADIUS
                around = f"a{r},{r} 0 1 1 {2 * r},0a{r},{r} 0 1 1 {-2 * r},0"
                canvas.path(f"M{point(x - r, y)}{around}", "edge")
            for (x, y), hand in ((first, q), (second, k)):
                tip = x + unit * float(hand[0]), y - unit * float(hand[1])
                canvas.path(f"M{point(x, y)}L{point(*tip)}", "edge", stroke_dasharray="4 4")
            canvas.vectors("query", [first], query[None], "q", unit=unit)
            canvas.vectors("key", [second], key[None], "k", unit=unit)
            x, y = third
            r = 0.45 * RADIUS
            start, end = (point(x + r * math.cos(angle), y - r * math.sin(angle)) for angle in ends)
            ahead = math.remainder(ends[1] - ends[0], 2 * math.pi) > 0
            arc = f"A{tenth(r)},{tenth(r)} 0 0 {0 if ahead else 1} {end}"
            canvas.path(f"M{point(x, y)}L{start}{arc}Z", "scores fill", fill_opacity=0.3)
            canvas.vectors("query again", [third], query[None], "q", unit=unit)
            canvas.vectors("key again", [third], key[None], "k", unit=unit)
            for words, row in (
                (f"angle between: {between:.3f}", 24),
                (f"product: {product}", 42),
            ):
                canvas.text(x, y + RADIUS + row, words, "scores of bold")
            for (x, y), words in (
                (first, f"turned by {m * theta:.1f}"),
                (second, f"turned by {n * theta:.1f}"),
            ):
                canvas.text(x, y + RADIUS + 24, words, "quiet", size=12)
            canvas.text(second[0], second[1] + RADIUS + 42, distance, "quiet", size=12)
            return third[1] + RADIUS + 54

        alt = (
            f"Two clocks. The query, at place {m}, is turned by {m * theta:.1f} radians against "
            f"the clock, and the key, at place {n}, by {n * theta:.1f}. Laid on each other their "
            f"hands are {between:.3f} radians apart, and their product is {product}."
        )
        values = {"query": query, "key": key, "query again": query, "key again": key}
        return Drawing(paint, alt, {name: hand[None] for name, hand in values.items()})

    return {f"query at {m}, key at {n}": draw(m, n) for m, n in places}


def turned(hand: Float[Tensor, " 2"], angle: float) -> Float[Tensor, " 2"]:
    a, b = hand.double()
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.stack((a * cos - b * sin, a * sin + b * cos))
