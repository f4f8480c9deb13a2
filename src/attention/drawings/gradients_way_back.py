"""The gradient's way back: from the loss to W_Q, an arrow as wide as what arrives at each stop."""

from collections.abc import Mapping
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point

WIDEST = 26  # the width of an arrow by which 1 arrives
LOOKS = ("x", "output", "weights", "scores", "q")  # of the answers, the row, and so on


def gradients_way_back(gradients: Mapping[str, Float[Tensor, "..."]]) -> Drawing:
    """Draw how much of the gradient arrives at each tensor on the way from the loss to W_Q.

    Args:
        gradients: of the loss with respect to the answers, the row that they are read off, the
            weights, the scores, and W_Q, by their names and in this order. The largest entry of
            each is drawn, without its sign.

    Example:
        >>> import torch
        >>> from attention.drawings import gradients_way_back
        >>> names = ["answers", "row", "weights", "scores", "W_Q"]
        >>> gradients_way_back({name: 0.5 * torch.eye(2) for name in names})
        Drawing of largest (5,)
    """
    largest = torch.stack([gradient.abs().max() for gradient in gradients.values()])
    sizes = largest.tolist()

    def paint(canvas: Canvas) -> Real:
        stations = list(zip(["loss", *gradients], ["x", *LOOKS], strict=True))
        if canvas.narrow:
            wide, high, gap, x, y = 150, 30, 38, 20, 40
            boxes = [(x, y + (high + gap) * nth) for nth in range(len(stations))]
        else:
            wide, high, x, y = 86, 40, 4, 48
            gap = (canvas.width - 2 * x - wide * len(stations)) / (len(stations) - 1)
            boxes = [(x + (wide + gap) * nth, y) for nth in range(len(stations))]
        right, bottom = boxes[-1][0] + wide, boxes[-1][1] + high
        if canvas.narrow:
            canvas.arrow(right + 110, bottom, right + 110, y, width=1)
            canvas.upright(right + 126, (y + bottom) / 2, "forward: the loss is computed", "quiet")
            canvas.text(x, 22, "backward: largest gradient that arrives", size=12, anchor="start")
        else:
            canvas.arrow(right, 28, x, 28, width=1)
            canvas.text(canvas.width / 2, 18, "forward: the loss is computed", "quiet", size=12)
            said = "backward: each arrow as wide as the largest gradient that arrives"
            canvas.text(canvas.width / 2, bottom + 48, said, size=12)
        shafts, heads = [], []
        for (left, top), size in zip(boxes[:-1], sizes, strict=True):
            half = WIDEST * size / 2 + 4  # of an arrow's head
            if canvas.narrow:
                at, start, end = left + wide / 2, top + high + 3, top + high + gap - 2
                shafts.append(f"M{point(at, start)}V{end - 10:.1f}")
                corners = point(at - half, end - 10), point(at, end), point(at + half, end - 10)
            else:
                at, start, end = top + high / 2, left + wide + 3, left + wide + gap - 2
                shafts.append(f"M{point(start, at)}H{end - 10:.1f}")
                corners = point(end - 10, at - half), point(end, at), point(end - 10, at + half)
            heads.append("L".join(corners))
        canvas.flows("largest", sizes, shafts, "x", widest=WIDEST)
        canvas.path(f"M{'ZM'.join(heads)}Z", "x fill", fill_opacity=0.55)
        for (left, top), (name, look) in zip(boxes, stations, strict=True):
            canvas.rectangle(left, top, wide, high, f"{look} stroke")
            canvas.text(left + wide / 2, top + high / 2 + 4, name, f"{look} of bold", size=12)
        for (left, top), size in zip(boxes[1:], sizes, strict=True):
            if canvas.narrow:
                canvas.text(left + wide + 12, top + 20, f"{size:.3f}", "bold", anchor="start")
            else:
                canvas.text(left + wide / 2, top + high + 20, f"{size:.3f}", "bold")
        return bottom + (16 if canvas.narrow else 60)

    told = ", ".join(f"{size:.3f} at {name}" for name, size in zip(gradients, sizes, strict=True))
    alt = (
        "The gradient's way back from the loss, against the way that the loss is computed. The "
        f"largest gradient that arrives: {told}."
    )
    return Drawing(paint, alt, {"largest": largest})
