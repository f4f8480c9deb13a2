"""A row of X is the row of a word plus the row of its place."""

from collections.abc import Sequence
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing


def word_and_place(
    words: Float[Tensor, "seq d_model"],
    pe: Float[Tensor, "seq d_model"],
    tokens: Sequence[str],
    positions: Sequence[int],
) -> Drawing:
    """Draw how the rows at some positions are added up.

    Args:
        words: the rows of a sentence's words, (seq, d_model).
        pe: those of its positions, (seq, d_model).
        tokens: its words.
        positions: those to draw.

    Example:
        >>> import torch
        >>> from attention.drawings import word_and_place
        >>> words, pe = torch.ones(2, 2), torch.eye(2)
        >>> word_and_place(words, pe, ["the", "the"], [1])
        Drawing of word 1 (1, 2), place 1 (1, 2), X 1 (1, 2)
    """
    values = {}
    for pos in positions:
        values[f"word {pos}"] = words[[pos]]
        values[f"place {pos}"] = pe[[pos]]
        values[f"X {pos}"] = words[[pos]] + pe[[pos]]
    largest = max(float(value.abs().max()) for value in values.values())

    def paint(canvas: Canvas) -> Real:
        left = 80
        high = 26
        wide = (canvas.width - left - 4) / words.shape[1]
        if not canvas.narrow:
            wide = min(wide, 68)
        block = 3 * high + 44
        for nth, pos in enumerate(positions):
            top = 8 + nth * block
            word = f"“{tokens[pos]}”"
            lines = [("word", word, ""), ("place", f"place {pos}", "+"), ("X", f"X row {pos}", "=")]
            if nth and torch.allclose(words[pos], words[positions[0]]):
                told = "the same word, another place" + ("" if canvas.narrow else ": another row")
                canvas.text(left, top - 9, told, "bold", size=12, anchor="start")
            for row, (kind, label, sign) in enumerate(lines):
                y = top + row * high + (8 if kind == "X" else 0)
                name = f"{kind} {pos}"
                look = {"cell": (wide, high - 4), "largest": largest}
                digits = 1 if canvas.narrow else 2
                canvas.matrix(name, left, y, values[name], digits=digits, **look)
                weight = "bold" if kind == "X" else ""
                canvas.text(left - 8, y + 15, label, weight, size=12, anchor="end")
                canvas.text(9, y + 15, sign, "bold", size=14)
            ruled = top + 2 * high + 2
            canvas.path(f"M{left},{ruled}h{round(wide * words.shape[1])}", "edge")
        return 8 + len(positions) * block - 28

    sums = " ".join(
        f"“{tokens[pos]}” at position {pos}: its word begins {begin(values[f'word {pos}'])}, its "
        f"place {begin(values[f'place {pos}'])}, and their sum, row {pos} of X, "
        f"{begin(values[f'X {pos}'])}."
        for pos in positions
    )
    return Drawing(
        paint, f"The row of a word plus the row of its place is a row of X. {sums}", values
    )


def begin(row: Float[Tensor, "1 d_model"]) -> str:
    """The first two numbers of a row."""
    return ", ".join(f"{value + 0.0:.2f}" for value in row[0, :2].tolist())
