"""The split into heads step by step: `view` makes tables of rows, `transpose` sorts by head."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point

Place = tuple[int, int, int]  # row, column and how many gaps lie above


def view_then_transpose(
    q: Float[Tensor, "seq d_model"], tokens: Sequence[str], n_heads: int
) -> dict[str, Drawing]:
    """Draw Q, `view` of it and `transpose` of that, by the names of these steps.

    The same pieces are drawn in each step, a token's part of a head each: only their places change.

    Args:
        q: (seq, d_model).
        tokens: seq words.
        n_heads: how many heads; a divisor of d_model.

    Example:
        >>> import torch
        >>> from attention.drawings import view_then_transpose
        >>> list(view_then_transpose(torch.eye(4), ["the", "cat", "saw", "it"], 2))
        ['Q', 'view', 'transpose']
    """
    seq, d_model = q.shape
    d_key = d_model // n_heads
    pieces = {
        f"{tokens[t]} {t}, head {r}": q[None, t, d_key * r : d_key * (r + 1)]
        for t in range(seq)
        for r in range(n_heads)
    }
    largest = float(q.abs().max())
    rows = seq * n_heads

    def draw(
        axes: str,
        holds: str,
        place: dict[tuple[int, int], Place],
        groups: Sequence[tuple[str, int, int]],
        by_head: bool,
        alt: str,
    ) -> Drawing:
        """Draw the pieces; `groups` are words and the first and last row that they stand beside."""

        def paint(canvas: Canvas) -> Real:
            wide, high = 29, 18
            left, top = (72 if canvas.narrow else 220), 52
            size = {"cell": (wide, high), "largest": largest, "digits": 1}
            y = {}
            for (t, r), (row, column, gaps) in place.items():
                y[row] = top + high * row + 7 * gaps
                x = left + wide * column
                piece = f"{tokens[t]} {t}, head {r}"
                canvas.matrix(piece, x, y[row], pieces[piece], f"head-{r}", **size)
                if groups:
                    words, look = (tokens[t], "") if by_head else (f"head {r}", f"head-{r} of")
                    canvas.text(
                        left + wide * d_key + 8, y[row] + 13, words, look, size=12, anchor="start"
                    )
            canvas.text(canvas.width / 2, 16, axes, "bold", size=13)
            canvas.text(canvas.width / 2, 34, holds, "quiet", size=12)
            for nth, (words, first, last) in enumerate(groups):
                edge = f"M{point(left - 6, y[first])}H{left - 11}V{y[last] + high - 1:g}H{left - 6}"
                canvas.path(edge, "quiet edge")
                look = f"head-{nth} of bold" if by_head else ""
                middle = (y[first] + y[last] + high) / 2 + 4
                canvas.text(left - 17, middle, words, look, size=12, anchor="end")
            if not groups:
                for t, token in enumerate(tokens):
                    canvas.text(left - 6, y[n_heads * t] + 13, token, size=12, anchor="end")
                for r in range(n_heads):
                    x = left + wide * d_key * (r + 0.5)
                    canvas.text(
                        x,
                        y[n_heads * (seq - 1)] + high + 15,
                        f"head {r}",
                        f"head-{r} of bold",
                        size=12,
                    )
            # As high at every step, so that the page below stays where it is.
            return top + high * rows + 7 * (seq - 1) + 8

        return Drawing(paint, alt, pieces)

    both = [(t, r) for t in range(seq) for r in range(n_heads)]
    sizes = f"{seq}, {n_heads}, {d_key}"
    return {
        "Q": draw(
            f"(seq, d_model) = ({seq}, {d_model})",
            "a row for each token",
            {(t, r): (n_heads * t, d_key * r, t) for t, r in both},
            (),
            False,
            f"Q: a row of {d_model} for each of {seq} tokens, {d_key} of them for each head.",
        ),
        "view": draw(
            f"(seq, heads, d_key) = ({sizes})",
            "a table for each token, with a row for each head",
            {(t, r): (n_heads * t + r, 0, t) for t, r in both},
            [(token, n_heads * t, n_heads * t + n_heads - 1) for t, token in enumerate(tokens)],
            False,
            f"After view: {seq} tables, one for each token, with a row of {d_key} for each head.",
        ),
        "transpose": draw(
            f"(heads, seq, d_key) = ({n_heads}, {seq}, {d_key})",
            "a table for each head, with a row for each token",
            {(t, r): (seq * r + t, 0, 2 * r) for t, r in both},
            [(f"head {r}", seq * r, seq * r + seq - 1) for r in range(n_heads)],
            True,
            f"After transpose: {n_heads} tables, one for each head, with a row of {d_key} for each "
            "token, in the order of the sentence.",
        ),
    }
