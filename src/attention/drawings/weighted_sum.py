"""Value rows flow into the row of the query, each as wide as its weight."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, tenth

GAP = 26  # of a row and the space below it, at least the width of all flows together


def weighted_sum(
    weights: Float[Tensor, " key"],
    values: Float[Tensor, "key d_key"],
    tokens: Sequence[str],
    query: int,
    head: str = "",
) -> Drawing:
    """Draw the value rows, a flow from each as wide as its weight, and the row that they make.

    Together the flows are as wide as that row is high: the weights sum to 1.

    Args:
        weights: of one query, (key,).
        values: of one head, (key, d_key).
        tokens: of the keys.
        query: its position.
        head: what to call the head, "head 0".

    Example:
        >>> import torch
        >>> from attention.drawings import weighted_sum
        >>> shares = torch.tensor([0.75, 0.25])
        >>> weighted_sum(shares, torch.eye(2), ["birds", "sing"], 1)
        Drawing of values (2, 2), weights (2,), sum (2,)
    """
    total = weights @ values
    largest = float(values.abs().max())
    whose = f" in {head}" if head else ""

    def paint(canvas: Canvas) -> Real:
        across = values.shape[1]
        cell = (min(40, 228 // across), GAP + 8) if canvas.narrow else (min(44, 240 // across), GAP)
        narrow = cell[0] < 34
        x, y = 44, 34
        look = {"cell": cell, "largest": largest, "digits": 1 if narrow else 2}
        canvas.text(x, 18, "value rows", "v of bold", anchor="start")
        names = [] if canvas.narrow else tokens
        box = canvas.matrix("values", x, y, values, "v", rows=names, **look)
        before, paths = 0.0, []
        place = (x, box.bottom + 34) if canvas.narrow else (canvas.width - 8 - cell[0] * across,)
        if not canvas.narrow:
            place = (*place, y + (box.height - GAP) / 2)
        for r, weight in enumerate(weights.tolist()):
            middle = y + r * cell[1] + (cell[1] - 1) / 2
            lane = before + weight * GAP / 2
            before += weight * GAP
            if canvas.narrow:
                canvas.text(x - 6, middle - 2, tokens[r], size=12, anchor="end")
                canvas.text(
                    x - 6, middle + 12, f"{weight:.2f}", "weights of", size=11, anchor="end"
                )
                out, end = box.right + 10 + GAP - lane, place[1] + GAP - lane
                paths.append(
                    f"M{box.right + 2},{tenth(middle)}H{tenth(out)}V{tenth(end)}H{box.right + 2}"
                )
            else:
                canvas.text(box.right + 24, middle + 4, f"{weight:.2f}", "weights of", size=12)
                left, right, end = box.right + 44, place[0] - 22, tenth(place[1] + lane)
                bend = tenth((left + right) / 2)
                start = f"M{left},{tenth(middle)}"
                paths.append(f"{start}C{bend},{tenth(middle)} {bend},{end} {right},{end}h20")
        canvas.flows("weights", weights.tolist(), paths, "weights", widest=GAP)
        row_look = {**look, "cell": (cell[0], GAP)}
        sum_box = canvas.matrix("sum", *place, total[None], "v", **row_look)
        title = f"what “{tokens[query]}” gets{whose}"
        if canvas.narrow:
            # Above the row the flows would cross it.
            canvas.text(x, sum_box.bottom + 20, title, "v of bold", anchor="start")
            return sum_box.bottom + 30
        canvas.text(sum_box.right, place[1] - 10, title, "v of bold", anchor="end")
        return max(box.bottom, sum_box.bottom) + 12

    parts = ", ".join(
        f"{weight:.2f} of “{token}”" for token, weight in zip(tokens, weights.tolist(), strict=True)
    )
    numbers = ", ".join(f"{number + 0.0:.2f}" for number in total.tolist())
    alt = (
        f"The value row of each token. From each a flow, as wide as its weight, leads into the row "
        f"that “{tokens[query]}” gets{whose}: {parts}. Together they make {numbers}."
    )
    return Drawing(paint, alt, {"values": values, "weights": weights, "sum": total})
