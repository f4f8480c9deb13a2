"""Q, cut by scissors between its columns: what each head owns."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point


def cut_into_heads(
    q: Float[Tensor, "seq d_model"], tokens: Sequence[str], n_heads: int, *, lit: int
) -> Drawing:
    """Draw Q with a cut between the columns of its heads, and the heads beside it.

    Args:
        q: (seq, d_model).
        tokens: seq words.
        n_heads: how many heads; a divisor of d_model.
        lit: the token whose row is outlined, in Q and in every head.

    Example:
        >>> import torch
        >>> from attention.drawings import cut_into_heads
        >>> cut_into_heads(torch.eye(2), ["the", "cat"], 2, lit=1)
        Drawing of Q (2, 2), head 0 (2, 1), head 1 (2, 1)
    """
    seq, d_model = q.shape
    d_key = d_model // n_heads
    values = {"Q": q} | {f"head {r}": q[:, d_key * r : d_key * (r + 1)] for r in range(n_heads)}
    largest = float(q.abs().max())

    def paint(canvas: Canvas) -> Real:
        wide, high = cell = (30, 20) if canvas.narrow else (31, 22)
        look = {"cell": cell, "largest": largest, "digits": 1}
        left, top = 56, 46

        def outline(x: Real, y: Real, columns: int) -> None:
            place = x - 1, y + lit * high - 1, columns * wide + 1, high + 1
            canvas.rectangle(*place, "x stroke", stroke_width=2)

        columns = [str(c) for c in range(d_model)]
        box = canvas.matrix("Q", left, top, q, "q", rows=tokens, columns=columns, **look)
        outline(left, top, d_model)
        for r in range(1, n_heads):
            cut = left + wide * d_key * r - 0.5
            canvas.path(f"M{point(cut, 24)}V{box.bottom + 6:g}", "cut")
            scissors(canvas, cut, 24)
        canvas.text(left, 16, "Q", "q of bold", size=13, anchor="start")

        if canvas.narrow:
            x, y, gap = left, box.bottom + 54, 18
            canvas.arrow(box.middle[0], box.bottom + 16, box.middle[0], y - 24)
        else:
            x, y, gap = box.right + 60, top, 20
            canvas.arrow(box.right + 14, box.middle[1], x - 14, box.middle[1])
        for r in range(n_heads):
            rows = tokens if canvas.narrow and r == 0 else ()
            head = canvas.matrix(
                f"head {r}", x, y, values[f"head {r}"], f"head-{r}", rows=rows, **look
            )
            canvas.text(head.middle[0], y - 8, f"head {r}", f"head-{r} of bold", size=13)
            outline(x, y, d_key)
            x = head.right + gap
        return head.bottom + 12

    owns = "; ".join(
        f"head {r} gets columns {d_key * r} to {d_key * (r + 1) - 1}" for r in range(n_heads)
    )
    alt = (
        f"Q, {seq} rows, one for each token, by {d_model} columns, cut between its columns: "
        f"{owns}, of every token. The row of “{tokens[lit]}” is outlined: each "
        "head has a part of it."
    )
    return Drawing(paint, alt, values)


def scissors(canvas: Canvas, x: Real, y: Real) -> None:
    """Paint open scissors about x that cut downwards from y."""
    for side in (-1, 1):
        canvas.path(
            f"M{point(x - 5 * side, y + 8)}L{point(x + 4 * side, y - 9)}",
            "x stroke",
            stroke_width=2,
        )
        ring = f"M{point(x + 4 * side, y - 9)}a4,4 0 1 {int(side < 0)} {3 * side},-7"
        canvas.path(f"{ring}a4,4 0 1 {int(side < 0)} {-3 * side},7", "x stroke", stroke_width=1.5)
