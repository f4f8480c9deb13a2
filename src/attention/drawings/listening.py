"""How well a weight listens to its own score: a(1 − a), a hill between 0 and 1."""

from collections.abc import Mapping
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point


def listening(rows: Mapping[str, Float[Tensor, " key"]]) -> Drawing:
    """Draw how far a weight moves with its own score, and where the weights of two rows stand.

    Args:
        rows: an open row of weights and a sure one, by their names.

    Example:
        >>> import torch
        >>> from attention.drawings import listening
        >>> listening({"open": torch.tensor([0.6, 0.4]), "sure": torch.tensor([1.0, 0.0])})
        Drawing of open (2,), sure (2,)
    """
    rates = {name: a * (1 - a) for name, a in rows.items()}

    def paint(canvas: Canvas) -> Real:
        left, right, top = 40, canvas.width - 40, 56
        tall = 130 if canvas.narrow else 150
        line, unit, across = top + tall, tall / 0.25, right - left
        steps = [i / 50 for i in range(51)]
        hill = [point(left + across * a, line - unit * a * (1 - a)) for a in steps]
        canvas.path(f"M{'L'.join(hill)}", "weights stroke", stroke_width=2)
        canvas.path(f"M{point(left - 8, line)}H{right + 8}", "edge")
        canvas.text(canvas.width / 2, 18, "how far a weight moves with its score", "bold")
        for a in (0, 0.5, 1):
            canvas.text(left + across * a, line + 22, f"{a:g}", "quiet", size=11)
        canvas.text(left + across * 0.75, line + 22, "weight a", "quiet", size=12)
        for nth, (name, a) in enumerate(rows.items()):
            xs = [left + across * float(one) for one in a]
            look = "x stroke" if nth else "weights fill"
            for x, rate in zip(xs, rates[name].tolist(), strict=True):
                canvas.path(f"M{point(x, line)}V{line - unit * rate:.1f}", "quiet edge")
            for x, rate, one in zip(xs, rates[name].tolist(), a.tolist(), strict=True):
                if nth == 0:
                    number = x - 9, line - unit * rate - 6, f"{one:.2f}"
                    canvas.text(*number, "weights of", size=12, anchor="end")
            dots = name, xs, line, rates[name].tolist(), look
            canvas.points(*dots, unit=unit, radius=8 if nth else 5)
        open_row, sure_row = rows
        top_dot = left + across * float(rows[open_row].max())
        canvas.text(top_dot + 8, top - 10, f"the {open_row} row", "weights of bold", anchor="start")
        canvas.text(left - 14, line + 38, f"the {sure_row} row", "bold", size=13, anchor="start")
        canvas.text(right + 14, line + 38, f"the {sure_row} row", "bold", size=13, anchor="end")
        return line + 48

    told = "; ".join(
        f"the {name} row, weights {', '.join(f'{one:.2f}' for one in a.tolist())}, moves at "
        f"{', '.join(f'{one:.2f}' for one in rates[name].tolist())}"
        for name, a in rows.items()
    )
    alt = (
        "How far a weight a moves with its own score, a times 1 minus a: 0 where a is 0 or 1, "
        f"most, 0.25, at 0.5. On this hill: {told}."
    )
    return Drawing(paint, alt, rates)
