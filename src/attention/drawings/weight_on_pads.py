"""One query's weight, shared between words and pads: the more pads, the less for the words."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing


def weight_on_pads(
    weights: Sequence[Float[Tensor, "_"]], tokens: Sequence[str], query: int, head: int
) -> Drawing:
    """Draw the weights of one query as one strip for each length of the padded sentence.

    Args:
        weights: (key,) for each length, the shortest first; keys beyond the tokens are pads.
        tokens: the words of the sentence.
        query: the position of the word whose weights they are.
        head: whose weights they are.

    Example:
        >>> import torch
        >>> from attention.drawings import weight_on_pads
        >>> weight_on_pads([torch.tensor([0.5, 0.5, 0.0])], ["birds", "sing"], 1, 0)
        Drawing of 3 tokens (3,)
    """
    n_words = len(tokens)
    values = {f"{len(row)} tokens": row.detach() for row in weights}
    on_pads = {name: float(row[n_words:].sum()) for name, row in values.items()}
    title = f"what “{tokens[query]}” gives to its keys in head {head}, without a mask"

    def paint(canvas: Canvas) -> Real:
        start, line = (6, 84) if canvas.narrow else (84, 66)
        unit = canvas.width - start - 14
        words = ["what", *title.split()[1:]]
        cut = 7 if canvas.narrow else len(words)
        canvas.text(start, 18, " ".join(words[:cut]), "weights of bold", anchor="start")
        canvas.text(start, 35, " ".join(words[cut:]), "weights of bold", anchor="start")
        top = 62 if canvas.narrow else 34
        for name, row in values.items():
            if canvas.narrow:
                canvas.text(start, top - 6, name, "quiet", anchor="start")
            else:
                canvas.text(start - 10, top + 17, name, "quiet", anchor="end")
            looks = ["weights"] * n_words + ["x faint"] * (len(row) - n_words)
            parts = canvas.strip(name, start, top, row.tolist(), looks, unit=unit)
            paint_names(canvas, parts[:n_words], tokens, row)
            if len(row) > n_words:
                first, last = parts[n_words], parts[-1]
                paint_bracket(canvas, first.x, last.right, top + 28, len(row) - n_words, row)
            top += line if len(row) > n_words else line - 24
        return top - 4 if canvas.narrow else top - 8

    def paint_bracket(
        canvas: Canvas, x: Real, right: Real, y: Real, n_pads: int, row: Float[Tensor, "_"]
    ) -> None:
        canvas.path(f"M{x + 1},{y}v5H{right - 1:.1f}v-5", "mistake stroke")
        middle = (x + right) / 2
        share = float(row[n_words:].sum())
        canvas.mistake(middle - 62, y + 17)
        canvas.text(middle - 48, y + 21, f"on {n_pads} pads: {share:.2f}", "bold", anchor="start")

    told = "; ".join(
        f"{name}: {share:.2f} of it on {len(values[name]) - n_words} pads"
        if len(values[name]) > n_words
        else f"{name}: all of it on words"
        for name, share in on_pads.items()
    )
    return Drawing(paint, f"{title.capitalize()}, a strip for each length. {told}.", values)


def paint_names(
    canvas: Canvas, parts: Sequence[Box], tokens: Sequence[str], row: Float[Tensor, "_"]
) -> None:
    """Name the parts that are wide enough for it."""
    for part, token, weight in zip(parts, tokens, row[: len(tokens)].tolist(), strict=True):
        name = f"{token} {weight:.2f}"
        if part.width > 6.2 * len(name):
            canvas.text(part.middle[0], part.y + 16, name, size=12)
