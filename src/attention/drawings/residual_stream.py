"""The residual stream: a row goes straight down, and each sublayer reads it and adds to it."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing

UNIT = 1.7  # the width of a flow for each 1 of a row's length
DOWN = 92  # from a sublayer to the next


def residual_stream(
    rows: Float[Tensor, "row d_model"], token: str, sublayers: Sequence[str]
) -> Drawing:
    """Draw a token's row on its way through a pre-norm stack, as wide as it is long.

    Args:
        rows: as it comes, and as each sublayer leaves it, (row, d_model).
        token: whose row it is.
        sublayers: the name of each, one fewer than rows.

    Example:
        >>> import torch
        >>> from attention.drawings import residual_stream
        >>> residual_stream(torch.eye(3), "dog", ["attention", "feed-forward"])
        Drawing of rows (3,), changes (2,)
    """
    lengths, changes = rows.norm(dim=-1), rows.diff(dim=0).norm(dim=-1)

    def paint(canvas: Canvas) -> Real:
        stream, norm, sublayer = (70, 118, 190) if canvas.narrow else (170, 280, 400)
        wide = canvas.width - sublayer - (12 if canvas.narrow else 120)
        middle, top = sublayer + wide / 2, 44
        floors = [top + DOWN * nth for nth in range(len(changes))]
        joins = [floor + 62 for floor in floors]
        ends = [*joins, joins[-1] + 40]
        starts = [top - 18, *joins]
        canvas.text(stream, 16, f"the row of “{token}”", "bold", size=12)
        paths = [f"M{stream},{a}V{b}" for a, b in zip(starts, ends, strict=True)]
        canvas.flows("rows", lengths.tolist(), paths, "x", widest=UNIT)
        paths = [
            f"M{middle},{floor + 32}V{join}H{stream + 13}"
            for floor, join in zip(floors, joins, strict=True)
        ]
        canvas.flows("changes", changes.tolist(), paths, "output", widest=UNIT)
        for nth, length in enumerate(lengths.tolist()):
            at = starts[nth] + (26 if nth else 20)
            canvas.text(stream - 26, at, f"{length:.1f}", size=12, anchor="end")
        for name, floor, join, change in zip(
            sublayers, floors, joins, changes.tolist(), strict=True
        ):
            canvas.arrow(stream + 16, floor + 16, norm - 2, floor + 16)
            canvas.rectangle(norm, floor + 2, 46, 28, "ground")
            canvas.rectangle(norm, floor + 2, 46, 28, "edge")
            canvas.text(norm + 23, floor + 20, "norm", size=12)
            canvas.arrow(norm + 48, floor + 16, sublayer - 2, floor + 16)
            canvas.rectangle(sublayer, floor + 2, wide, 28, "ground")
            canvas.rectangle(sublayer, floor + 2, wide, 28, "output stroke")
            canvas.text(middle, floor + 20, name, "bold", size=12)
            beside = (stream + 28, "start") if canvas.narrow else (norm + 23, "middle")
            canvas.text(beside[0], join - 16, f"adds {change:.1f}", size=12, anchor=beside[1])
            canvas.rectangle(stream - 9, join - 9, 18, 18, "ground", rx=9)
            canvas.rectangle(stream - 9, join - 9, 18, 18, "edge", rx=9)
            canvas.text(stream, join + 5, "+", "bold", size=15)
        canvas.text(stream, ends[-1] + 18, "to the next reader", "quiet", size=12)
        return ends[-1] + 30

    told = "; ".join(
        f"{name} reads it through a norm and adds a change of length {change:.1f}, which leaves "
        f"{length:.1f}"
        for name, change, length in zip(
            sublayers, changes.tolist(), lengths[1:].tolist(), strict=True
        )
    )
    alt = (
        f"The row of “{token}” goes straight down as a line, as wide as the row is long, "
        f"{lengths[0]:.1f} at first. {told}."
    )
    return Drawing(paint, alt, {"rows": lengths, "changes": changes})
