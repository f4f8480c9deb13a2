"""Heads stand side by side before W_o; behind it each writes into every column, and they add."""

from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, tenth


def heads_add(
    results: Float[Tensor, "heads d_key"],
    wrote: Float[Tensor, "heads d_model"],
    bias: Float[Tensor, " d_model"],
    token: str,
) -> Drawing:
    """Draw one token's merged row, what each head writes through W_o, and their sum.

    Args:
        results: of each head.
        wrote: each head's result times its own rows of W_o.
        bias: of W_o.
        token: whose row it is.

    Example:
        >>> import torch
        >>> from attention.drawings import heads_add
        >>> result, wrote = torch.ones(1, 1), torch.ones(1, 2)
        >>> heads_add(result, wrote, torch.zeros(2), "saw")
        Drawing of head 0 (1,), head 0 wrote (2,), bias (2,), sum (2,)
    """
    n_heads, d_key = results.shape
    d_model = wrote.shape[1]
    total = wrote.sum(dim=0) + bias
    rows = [(f"head {r} wrote", wrote[r], f"head-{r}") for r in range(n_heads)]
    rows += [("bias", bias, "x"), ("sum", total, "output")]

    def paint(canvas: Canvas) -> Real:
        x = 8 if canvas.narrow else 128
        column = (canvas.width - x - 8) / d_model
        unit = 52 / float(max(row.abs().max() for _, row, _ in rows))
        y = 34
        canvas.text(x, 16, f"the merged row of “{token}”", "bold", anchor="start")
        for r in range(n_heads):
            at = x + r * d_key * column
            cell = {"cell": (column, 24), "largest": float(results.abs().max())}
            digits = 1 if canvas.narrow else 2
            canvas.matrix(
                f"head {r}", at, 28, results[r : r + 1], f"head-{r}", digits=digits, **cell
            )
            middle = at + d_key * column / 2
            canvas.text(middle, 69, f"head {r}", f"head-{r} of bold", size=12)
            right, whole = at + d_key * column, x + d_model * column
            fan = f"M{tenth(at)},76H{tenth(right)}L{tenth(whole)},112H{x}Z"
            canvas.path(fan, f"head-{r} fill", fill_opacity=0.2)
        canvas.text(x + d_model * column / 2, 99, "each through its rows of W_o", "bold", size=12)
        y = 116
        for nth, (name, row, look) in enumerate(rows):
            up, down = (float(part.clamp(min=0).max()) * unit for part in (row, -row))
            label = {"bias": "+ the bias", "sum": f"= the row of “{token}”"}.get(
                name, ("+ " if nth else "") + name.replace("wrote", "writes")
            )
            if canvas.narrow:
                y += 20
                canvas.text(x, y, label, f"{look} of bold", size=12, anchor="start")
            y += up + 22
            if not canvas.narrow:
                # Two lines, where the words are long.
                words = label.split(" of ")
                canvas.text(x - 12, y + 4, words[0], f"{look} of bold", size=12.5, anchor="end")
                for rest in words[1:]:
                    canvas.text(x - 12, y + 20, f"of {rest}", f"{look} of bold", anchor="end")
            bars = {"unit": unit, "wide": column, "digits": 1}
            canvas.bars(name, x + column * 0.15, y, row.tolist(), look, **bars)
            y += down + 18
        return y + 4

    def told(row: Float[Tensor, " d_model"]) -> str:
        return ", ".join(f"{number + 0.0:.1f}" for number in row.tolist())

    writes = "; ".join(f"{name}: {told(row)}" for name, row, _ in rows)
    alt = (
        f"The merged row of “{token}”: {d_key} columns of each head, side by side. Through W_o "
        f"each spreads to all {d_model} columns, and has a bar in each. Column by column they add. "
        f"{writes}."
    )
    own = {f"head {r}": results[r] for r in range(n_heads)}
    return Drawing(paint, alt, {**own, **{name: row for name, row, _ in rows}})
