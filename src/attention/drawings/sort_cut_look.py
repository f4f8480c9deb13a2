"""Hashing by direction on a circle, then the tokens in a row: sorted, cut, looked at."""

import math
from numbers import Real

from jaxtyping import Float, Int
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point

STEPS = ("1: hash", "2: sort", "3: cut", "4: look")
RADIUS, CELL, HIGH = 88, 36, 28


def sort_cut_look(
    x: Float[Tensor, "seq 2"],
    rotation: Float[Tensor, "2 2"],
    buckets: Int[Tensor, " seq"],
    *,
    chunk_length: int,
    asks: int,
) -> dict[str, Drawing]:
    """Draw the circle with its four sectors, and what the Reformer does with the tokens in them.

    Args:
        x: the tokens' vectors, (seq, 2).
        rotation: whose columns are the middles of sectors 0 and 1; 2 and 3 lie opposite.
        buckets: the sector of each token, (seq,), as `lsh_buckets` numbers them.
        chunk_length: how many sorted tokens make a chunk.
        asks: the token whose look is drawn.

    Example:
        >>> import torch
        >>> from attention import lsh_buckets
        >>> from attention.drawings import sort_cut_look
        >>> x, turn = torch.tensor([[1.0, 0.2], [-1, 0.1], [1, 0.4]]), torch.eye(2)
        >>> buckets = lsh_buckets(x[None, None], turn[None])[0, 0, 0]
        >>> steps = sort_cut_look(x, turn, buckets, chunk_length=2, asks=2)
        >>> steps["4: look"]
        Drawing of x (3, 2)
    """
    number = buckets.tolist()
    order = sorted(range(len(number)), key=lambda i: (number[i], i))
    chunk = {token: rank // chunk_length for rank, token in enumerate(order)}
    seen = [
        j
        for j in order
        if j != asks and number[j] == number[asks] and 0 <= chunk[asks] - chunk[j] <= 1
    ]
    middle = math.degrees(math.atan2(rotation[1, 0], rotation[0, 0]))
    directions = x / x.norm(dim=-1, keepdim=True)

    def draw(step: int) -> Drawing:
        row = order if step else list(range(len(number)))

        def paint(canvas: Canvas) -> Real:
            centre = (canvas.width / 2, 116) if canvas.narrow else (132, 116)
            paint_circle(canvas, centre, middle, directions, asks, lit=not step)
            left = (canvas.width - CELL * len(row)) / 2 if canvas.narrow else 300
            top = 296 if canvas.narrow else 108
            words = "tokens, by position" if not step else "sorted by bucket, then by position"
            canvas.text(left, top - 48, words, "bold" if step < 2 else "", anchor="start")
            for rank, token in enumerate(row):
                at, is_lit = left + rank * CELL, step == 3 and token in [asks, *seen]
                look = "q" if token == asks else "k"
                canvas.rectangle(at, top, CELL - 2, HIGH, f"{look} stroke", stroke_width=1)
                if is_lit:
                    canvas.rectangle(at, top, CELL - 2, HIGH, f"{look} fill", fill_opacity=0.3)
                canvas.text(at + CELL / 2 - 1, top + 19, str(token), f"{look} of bold")
                canvas.text(at + CELL / 2 - 1, top + HIGH + 17, str(number[token]), "quiet")
            canvas.text(left, top + HIGH + 36, "bucket", "quiet", size=12, anchor="start")
            if step >= 2:
                for rank in range(chunk_length, len(row), chunk_length):
                    at = left + rank * CELL - 1
                    canvas.path(f"M{point(at, top - 12)}v{HIGH + 38}", "cut")
                words = f"cut into chunks of {chunk_length}"
                canvas.text(
                    left, top + HIGH + 60, words, "bold" if step == 2 else "", anchor="start"
                )
            if step == 3:
                begin = left + (order.index(asks) + 0.5) * CELL - 1
                for token in seen:
                    end = left + (order.index(token) + 0.5) * CELL - 1
                    rise = top - 12 - 0.14 * abs(begin - end)
                    bend = f"C{point(begin, rise)} {point(end, rise)} {point(end, top - 2)}"
                    canvas.path(f"M{point(begin, top - 2)}{bend}", "q stroke", stroke_width=2)
                its = ["its bucket,", "in its chunk and the one before"]
                lines = its if canvas.narrow else [" ".join(its)]
                for nth, line in enumerate([f"{asks} looks at {listed(seen)}", *lines]):
                    canvas.text(left, top + HIGH + 84 + 18 * nth, line, "bold", anchor="start")
            return top + HIGH + (132 if canvas.narrow else 114)

        return Drawing(paint, told(step, row), {"x": directions})

    def told(step: int, row: list[int]) -> str:
        circle = "A circle with four sectors. " + " ".join(
            f"In sector {b}: {listed([i for i in range(len(number)) if number[i] == b])}."
            for b in range(4)
        )
        chunks = [row[i : i + chunk_length] for i in range(0, len(row), chunk_length)]
        return [
            f"{circle} The tokens stand in a row by their positions, each with its bucket.",
            f"The tokens stand sorted by bucket: {listed(row)}.",
            f"The sorted row is cut into chunks: {'; '.join(map(listed, chunks))}.",
            f"Token {asks} looks at {listed(seen)}: those of its bucket in its own chunk and "
            "in the one before.",
        ][step]

    return {name: draw(step) for step, name in enumerate(STEPS)}


def listed(tokens: list[int]) -> str:
    return ", ".join(map(str, tokens)) or "none"


def paint_circle(
    canvas: Canvas,
    centre: tuple[Real, Real],
    middle: Real,
    directions: Float[Tensor, "seq 2"],
    asks: int,
    *,
    lit: bool,
) -> None:
    """Paint the borders of the sectors, their numbers, and an arrow for each token."""

    def at(degrees: Real, length: Real) -> tuple[Real, Real]:
        angle = math.radians(degrees)
        return centre[0] + length * math.cos(angle), centre[1] - length * math.sin(angle)

    around = f"a{RADIUS},{RADIUS} 0 1 1"
    canvas.path(
        f"M{point(centre[0] - RADIUS, centre[1])}{around} {2 * RADIUS},0{around} {-2 * RADIUS},0",
        "edge",
    )
    for sector in range(4):
        border = point(*at(middle + 45 + 90 * sector, RADIUS))
        canvas.path(f"M{point(*centre)}L{border}", "cut" if lit else "edge")
        canvas.text(*at(middle + 90 * sector, 42), str(sector), "quiet bold" if lit else "quiet")
    unit = 0.82 * RADIUS
    canvas.vectors("x", [centre] * len(directions), directions, "k", unit=unit, width=1.5)
    for token, (right, up) in enumerate(directions.tolist()):
        x, y = centre[0] + 102 * right, centre[1] - 102 * up + 4
        canvas.text(x, y, str(token), "q of bold" if token == asks else "k of bold")
