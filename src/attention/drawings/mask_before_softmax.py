"""The causal mask as a triangle over the scores, and the weights that softmax then makes."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Bool, Float
from torch import Tensor, inf

from attention.drawings.drawing import Box, Canvas, Drawing


def mask_before_softmax(
    scores: Float[Tensor, "query key"], mask: Bool[Tensor, "query key"], tokens: Sequence[str]
) -> Drawing:
    """Draw the scores with the mask over them, then the weights.

    Args:
        scores: of one head, (query, key).
        mask: True = may attend.
        tokens: of the queries and of the keys.

    Example:
        >>> import torch
        >>> from attention import causal_mask
        >>> from attention.drawings import mask_before_softmax
        >>> mask_before_softmax(torch.zeros(2, 2), causal_mask(2), ["birds", "sing"])
        Drawing of scores (2, 2), weights (2, 2)
    """
    weights = scores.masked_fill(~mask, -inf).softmax(dim=-1)

    def paint(canvas: Canvas) -> Real:
        cell = (40, 24) if canvas.narrow else (37, 24)
        x, y = (48, 66) if canvas.narrow else (46, 66)
        canvas.text(x, 18, "scores", "scores of bold", size=14, anchor="start")
        canvas.text(x, 36, "and over them the triangle of −∞", "quiet", size=12, anchor="start")
        labels = {"rows": tokens, "columns": tokens, "cell": cell}
        left = canvas.matrix("scores", x, y, scores, digits=None, **labels)
        paint_triangle(canvas, left, cell)
        # The label of the rows takes its place again where the weights stand beside the scores.
        if canvas.narrow:
            down = left.bottom + 44
            canvas.arrow(left.middle[0], left.bottom + 6, left.middle[0], down - 6, width=2)
            canvas.text(
                left.middle[0] + 12, left.bottom + 27, "softmax, row by row", anchor="start"
            )
            y = down + 62
        else:
            beyond = left.right + 84
            canvas.arrow(left.right + 10, left.middle[1], beyond - 18, left.middle[1], width=2)
            canvas.text(left.right + 38, left.middle[1] - 22, "softmax,", size=12)
            canvas.text(left.right + 38, left.middle[1] - 8, "row by row", size=12)
            x, labels["rows"] = beyond, ()
        title = y - 48
        canvas.text(x, title, "weights", "weights of bold", size=14, anchor="start")
        canvas.text(x, title + 18, "each row sums to 1", "quiet", size=12, anchor="start")
        right = canvas.matrix("weights", x, y, weights, "weights", **labels)
        paint_stairs(canvas, right, cell)
        return right.bottom + 12

    def paint_triangle(canvas: Canvas, box: Box, cell: tuple[Real, Real]) -> None:
        wide, high = cell
        for r, row in enumerate(mask.tolist()):
            for c, allowed in enumerate(row):
                at = box.x + (c + 0.5) * wide, box.y + r * high + high / 2 + 4
                if allowed:
                    number = f"{float(scores[r, c]):.0f}".replace("-", "−")
                    canvas.text(*at, "0" if number == "−0" else number, size=11)
                else:
                    look = "ground"
                    place = box.x + c * wide, box.y + r * high, wide - 1, high - 1
                    canvas.rectangle(*place, look, fill_opacity=0.55)
                    canvas.text(*at, "−∞", "bold", size=12)
        paint_stairs(canvas, box, cell)

    def paint_stairs(canvas: Canvas, box: Box, cell: tuple[Real, Real]) -> None:
        wide, high = cell
        edge = "".join(
            f"V{box.y + (r + 1) * high - 0.5}H{box.x + (r + 2) * wide - 0.5}"
            for r in range(len(tokens) - 1)
        )
        canvas.path(f"M{box.x + wide - 0.5},{box.y}{edge}", "cut")

    rows = "; ".join(
        f"{token}: " + ", ".join(f"{weight:.2f}" for weight in weights[r][mask[r]].tolist())
        for r, token in enumerate(tokens)
    )
    alt = (
        "The scores of each word with every word. Over those with later words lies a triangle of "
        f"−∞. An arrow, softmax row by row, leads to the weights: no later word has any. {rows}."
    )
    return Drawing(paint, alt, {"scores": scores, "weights": weights})
