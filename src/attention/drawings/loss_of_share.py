"""The loss over the share of the right word: −ln p, which every halving of p raises alike."""

import math
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point


def loss_of_share(share: Float[Tensor, ""], word: str) -> Drawing:
    """Draw what a share of the right word costs: at a share of 1, at each halving, at a model's.

    Args:
        share: what a model gives to the right word, a scalar above 0 and below 1.
        word: the right one.

    Example:
        >>> import torch
        >>> from attention.drawings import loss_of_share
        >>> loss_of_share(torch.tensor(0.1), "dog")
        Drawing of halvings (4,), model (1,)
    """
    p = share.item()
    loss = -math.log(p)
    halvings = torch.arange(1 + math.floor(-math.log2(p)))  # from a share of 1 on
    shares, losses = 0.5**halvings, halvings * math.log(2)

    def paint(canvas: Canvas) -> Real:
        left, right, top = 48, canvas.width - 24, 34
        tall, across = 240, right - left
        unit = tall / max(loss, float(losses[-1]))
        line = top + tall
        ends = math.log(min(p, float(shares[-1])))
        along = [math.exp(ends * (1 - i / 80)) for i in range(81)]
        xs = [left + across * one for one in shares.tolist()]
        canvas.text(6, 16, "loss", "bold", anchor="start")
        canvas.path(f"M{left},{top - 10}V{line}H{right + 8}", "edge")
        for x, height in zip(xs, losses.tolist(), strict=True):
            y = line - unit * height
            canvas.path(f"M{point(left, y)}H{x:.1f}", "quiet edge", stroke_dasharray="3 4")
            canvas.text(left - 6, y + 4, f"{height:.2f}", "quiet", size=12, anchor="end")
        curve = [point(left + across * one, line + unit * math.log(one)) for one in along]
        canvas.path(f"M{'L'.join(curve)}", "x stroke", stroke_width=2)
        canvas.points("halvings", xs, line, losses.tolist(), "x stroke", unit=unit)
        at = left + across * p
        canvas.points("model", [at], line, [loss], "output fill", unit=unit, radius=5)
        y = line - unit * loss
        canvas.text(at + 14, y + 2, f"“{word}” before training:", "output of bold", anchor="start")
        said = f"share {p:.3f}, loss {loss:.2f}"
        canvas.text(at + 14, y + 18, said, "output of bold", anchor="start")
        middle = left + across * 0.3
        between = line - unit * float(losses[-1]) / 2
        canvas.text(middle, between, "each halving of the share", size=12, anchor="start")
        canvas.text(middle, between + 16, f"adds {math.log(2):.2f}", size=12, anchor="start")
        for mark in shares[:3].tolist():
            canvas.text(left + across * mark, line + 18, f"{mark:g}", "quiet", size=12)
        canvas.text(left, line + 18, "0", "quiet", size=12)
        canvas.text(left + across * 0.75, line + 18, "share p", "bold", size=12)
        return line + 28

    alt = (
        "The loss, minus the logarithm of the share p of the right word: 0 at a share of 1, and "
        f"{math.log(2):.2f} more for each halving, so that it is {losses[-1]:.2f} after "
        f"{len(halvings) - 1} of them, at a share of {shares[-1]:.3f}. The model gives “{word}” "
        f"{p:.3f} before training, which costs {loss:.2f}."
    )
    return Drawing(paint, alt, {"halvings": losses, "model": torch.tensor([loss])})
