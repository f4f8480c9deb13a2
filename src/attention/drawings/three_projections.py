"""One X through three matrices: Q, K and V."""

from collections.abc import Mapping, Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor, nn

from attention.drawings.drawing import Box, Canvas, Drawing

CELL = 11  # as high as wide
ROLES = {"Q": "what it looks for", "K": "what it offers", "V": "what it passes on"}


def three_projections(
    x: Float[Tensor, "seq d_model"],
    layers: Mapping[str, nn.Linear],
    tokens: Sequence[str],
    lit: int,
) -> Drawing:
    """Draw X, the three matrices, and Q, K and V that come out; one row is marked all the way.

    Args:
        x: of one sentence, (seq, d_model).
        layers: those that make "Q", "K" and "V".
        tokens: the words of the sentence.
        lit: the row to mark.

    Example:
        >>> import torch
        >>> from attention.drawings import three_projections
        >>> layers = {name: torch.nn.Linear(2, 2) for name in "QKV"}
        >>> three_projections(torch.ones(3, 2), layers, ["a", "b", "c"], 1)
        Drawing of X (3, 2), W_Q (2, 2), Q (3, 2), W_K (2, 2), K (3, 2), W_V (2, 2), V (3, 2)
    """
    seq, d_model = x.shape
    values = {"X": x}
    for name, layer in layers.items():
        values |= {f"W_{name}": layer.weight.T.detach(), name: layer(x).detach()}

    def paint(canvas: Canvas) -> Real:
        wide, high, square = d_model * CELL, seq * CELL, d_model * CELL

        def draw(name: str, left: Real, top: Real, look: str) -> Box:
            box = canvas.matrix(name, left, top, values[name], look, cell=(CELL, CELL), digits=None)
            if not name.startswith("W"):
                row = box.x - 2, box.y + lit * CELL - 2, wide + 3, CELL + 3
                canvas.rectangle(*row, "x stroke", stroke_width=2)
            return box

        if canvas.narrow:
            share = canvas.width / 3
            first = draw("X", 160 - wide / 2, 30, "x")
            canvas.text(160, 20, "X", "bold", size=15)
            word = first.x - 8, 30 + (lit + 0.5) * CELL + 4
            canvas.text(*word, tokens[lit], "bold", anchor="end")
            fan = first.bottom + 6, first.bottom + 46
            for nth, name in enumerate(layers):
                middle, look = share * (nth + 0.5), name.lower()
                canvas.arrow(160, fan[0], middle, fan[1], look, width=2)
                times(canvas, middle, fan[1] + 22, name)
                draw(f"W_{name}", middle - wide / 2, fan[1] + 30, look)
                under = fan[1] + 30 + square
                canvas.arrow(middle, under + 4, middle, under + 28, look, width=2)
                draw(name, middle - wide / 2, under + 32, look)
                canvas.text(middle, under + 32 + high + 20, name, f"{look} of bold", size=15)
                canvas.text(middle, under + 32 + high + 37, ROLES[name], f"{look} of", size=12)
                canvas.text(middle + 8, under + 20, "+ bias", "quiet", size=11, anchor="start")
            return under + 32 + high + 46
        left = 66
        step = square + 38
        middle = 28 + step + square / 2
        first = draw("X", left, middle - high / 2, "x")
        canvas.text(first.middle[0], first.y - 10, "X", "bold", size=15)
        word = left - 8, first.y + (lit + 0.5) * CELL + 4
        canvas.text(*word, tokens[lit], "bold", anchor="end")
        for nth, name in enumerate(layers):
            y, look = 28 + step * nth + square / 2, name.lower()
            canvas.arrow(first.right + 8, middle, 262, y, look, width=2)
            times(canvas, 270 + wide / 2, y - square / 2 - 8, name)
            draw(f"W_{name}", 270, y - square / 2, look)
            canvas.arrow(270 + wide + 8, y, 440, y, look, width=2)
            made = draw(name, 448, y - high / 2, look)
            canvas.text(made.middle[0], made.y - 8, name, f"{look} of bold", size=15)
            canvas.text(405, y - 6, "+ bias", "quiet", size=11)
            role = made.right + 10, made.y + (lit + 0.5) * CELL + 4
            canvas.text(*role, ROLES[name], f"{look} of", size=12, anchor="start")
        return 28 + 3 * step - 24

    alt = (
        f"One X, {seq} by {d_model}, goes three ways, through three matrices of {d_model} by "
        f"{d_model}: through that of Q, plus a bias, it becomes Q, through that of K it becomes K, "
        f"and through that of V it becomes V, {seq} by {d_model} each. The row of “{tokens[lit]}” "
        "is marked: it becomes that word's row of Q, of K and of V. The stronger a cell, the "
        "larger its number, whatever the sign."
    )
    return Drawing(paint, alt, values)


def times(canvas: Canvas, x: Real, y: Real, name: str) -> None:
    """Write the name of a matrix, its letter raised."""
    look = f"{name.lower()} of bold"
    canvas.text(x - 4, y, "W", look, size=15)
    canvas.text(x + 9, y - 6, name, look, size=11)
