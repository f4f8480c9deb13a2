"""Attention in tiles between two memories: the two loops, and what crosses, to scale."""

from collections.abc import Sequence
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing

# What crosses on each way, in this order: its name and its look.
STANDARD = {
    "Q": "q",
    "K": "k",
    "scores out": "scores",
    "scores in": "scores",
    "weights out": "weights",
    "weights in": "weights",
    "V": "v",
    "output": "output",
}
TILED = {"Q": "q", "K": "k", "V": "v", "output": "output", "L": "x"}
NUMBER_OF_L = 4  # bytes: the log-sum-exp is kept in float32


def two_memories(
    q: Float[Tensor, "query d_key"],
    k: Float[Tensor, "key d_key"],
    v: Float[Tensor, "key d_value"],
    tile: int,
) -> Drawing:
    """Draw a large slow memory and a small quick one, and count the bytes that cross.

    Each tile of queries stays in the small memory until all tiles of keys and values have passed.
    Standard attention writes scores and weights to the large memory and reads each of them again.

    Args:
        q: of one head, (query, d_key); its numbers are not read, their size is.
        k: (key, d_key).
        v: (key, d_value).
        tile: how many queries a tile has.

    Example:
        >>> import torch
        >>> from attention.drawings import two_memories
        >>> x = torch.zeros(1024, 64, dtype=torch.float16)
        >>> two_memories(x, x, x, tile=64)
        Drawing of standard (8,), in tiles (5,)
    """
    passes = -(-q.shape[0] // tile)  # of all keys and values: one for each tile of queries
    standard, tiled = moved(q, k, v, passes)
    outputs = float(tiled[3:].sum())

    def paint(canvas: Canvas) -> Real:
        crossing = (
            ("q", "Q", f"once, {megabytes(tiled[0])}"),
            ("k", "K and V", f"{passes:,} times, {megabytes(tiled[1:3].sum())}"),
            ("output", "output, L", f"once, {megabytes(outputs)}"),
        )
        small = paint_memories(canvas, q, k, v, tile)
        y = paint_crossing(canvas, crossing, small)
        whole = float(max(standard.sum(), tiled.sum()))
        for title, name, parts, kinds in (
            ("standard attention", "standard", standard, STANDARD),
            (f"in tiles of {tile} queries", "in tiles", tiled, TILED),
        ):
            y += 34
            said = f"{title}: {megabytes(parts.sum())} cross"
            canvas.text(4, y, said, size=12, anchor="start")
            unit = (canvas.width - 8) / whole
            strip = canvas.strip(
                name, 4, y + 8, parts.tolist(), list(kinds.values()), unit=unit, high=22
            )
            for box, part in zip(strip, kinds, strict=True):
                if box.width > 6.6 * len(part):
                    canvas.text(box.middle[0], box.y + 15, part, size=11)
            y += 30
        return y + 8

    alt = (
        f"Two memories. In the large and slow one lie Q, K, V and the output, {q.shape[0]:,} rows "
        f"each. An outer loop takes {tile} queries at a time into the small and quick memory, "
        f"{megabytes(tiled[0])} in all. For each of these {passes:,} tiles an inner loop brings "
        f"all keys and values, tile by tile: {megabytes(tiled[1:3].sum())}. Scores are made there "
        f"and never leave. Output and log-sum-exp go back once, {megabytes(outputs)}. In all "
        f"{megabytes(tiled.sum())} cross; standard attention, which writes and reads scores and "
        f"weights, moves {megabytes(standard.sum())}."
    )
    return Drawing(paint, alt, {"standard": standard, "in tiles": tiled})


def moved(
    q: Tensor, k: Tensor, v: Tensor, passes: int
) -> tuple[Float[Tensor, " 8"], Float[Tensor, " 5"]]:
    """Megabytes that cross for each of `STANDARD` and of `TILED`."""
    queries, keys, values = (x.numel() * x.element_size() for x in (q, k, v))
    pairs = q.shape[0] * k.shape[0] * q.element_size()
    output = q.shape[0] * v.shape[1] * q.element_size()
    standard = [queries, keys, *[pairs] * 4, values, output]
    tiled = [queries, passes * keys, passes * values, output, q.shape[0] * NUMBER_OF_L]
    return tuple(torch.tensor(bytes_, dtype=torch.float64) / 1e6 for bytes_ in (standard, tiled))


def megabytes(size: Real | Tensor) -> str:
    return f"{float(size):,.0f} MB" if size >= 1 else f"{float(size):.2f} MB"


def paint_memories(canvas: Canvas, q: Tensor, k: Tensor, v: Tensor, tile: int) -> Box:
    """Paint both memories and the tiles in hand; returns where the small one is."""
    wide = canvas.width - 8 if canvas.narrow else 316
    large = canvas.rectangle(4, 28, wide, 182, "edge")
    canvas.text(large.x, 18, "large memory, slow", "bold", anchor="start")
    step = wide / 4
    for nth, (name, x, look) in enumerate(
        (("Q", q, "q"), ("K", k, "k"), ("V", v, "v"), ("output", q, "output"))
    ):
        left = large.x + step * nth + (step - 30) / 2 + 8
        box = canvas.tensor(left, 56, (12, 3), look, unit=10)
        canvas.text(box.middle[0], 47, name, f"{look} of bold", size=12)
        canvas.text(box.middle[0], 193, f"{x.shape[0]:,}", "quiet", size=11)
        row = 0 if look in "kv" else 2  # of six tiles that stand for all
        canvas.rectangle(box.x, box.y + 20 * row, box.width, 20, f"{look} fill", fill_opacity=0.6)
        if look in "qk":
            canvas.arrow(box.x - 8, box.y, box.x - 8, box.bottom, width=1)
            loop = "outer loop" if look == "q" else "inner loop"
            canvas.upright(box.x - 14, box.middle[1], loop, "quiet")
    x, y = (4, 330) if canvas.narrow else (canvas.width - 184, 28)
    wide = canvas.width - 8 if canvas.narrow else 180
    small = canvas.rectangle(x, y, wide, 116 if canvas.narrow else 182, "edge")
    canvas.text(x, y - 10, "small memory, quick", "bold", anchor="start")
    parts = (
        (f"{tile} queries", "q"),
        ("some keys and values", "k"),
        ("their scores: never leave", "scores"),
        ("maximum, sum, output so far", "output"),
    )
    pitch = (small.height - 12) / len(parts)
    for nth, (words, look) in enumerate(parts):
        box = Box(x + 8, y + 8 + pitch * nth, wide - 16, pitch - 6)
        canvas.rectangle(*box, f"{look} fill", fill_opacity=0.16)
        canvas.rectangle(*box, f"{look} stroke")
        canvas.text(box.middle[0], box.middle[1] + 4, words, size=11)
    return small


def paint_crossing(canvas: Canvas, crossing: Sequence[tuple[str, str, str]], small: Box) -> Real:
    """Paint what crosses between the memories; returns where the drawing ends so far."""
    for nth, (look, name, amount) in enumerate(crossing):
        width = 4 if look == "k" else 1.5
        if canvas.narrow:
            x, y = canvas.width * (nth + 0.5) / 3, 214
            ends = (small.y - 28, y) if look == "output" else (y, small.y - 28)
            canvas.arrow(x - 44, ends[0], x - 44, ends[1], look, width=width)
            canvas.text(x - 34, y + 26, name, f"{look} of bold", size=12, anchor="start")
            for row, words in enumerate(amount.split(", ")):
                canvas.text(x - 34, y + 44 + 16 * row, words, size=11, anchor="start")
        else:
            y = small.y + small.height * (nth + 0.5) / 3
            left, right = 328, small.x - 8
            ends = (right, left) if look == "output" else (left, right)
            canvas.arrow(ends[0], y, ends[1], y, look, width=width)
            canvas.text((left + right) / 2, y - 8, name, f"{look} of bold", size=12)
            canvas.text((left + right) / 2, y + 18, amount, size=11)
    return small.bottom
