"""Teacher forcing: the signs that go in, those that are compared, and the mask between them."""

from collections.abc import Callable
from numbers import Real

from jaxtyping import Bool, Int64
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing


def teacher_forcing(
    reads: Int64[Tensor, " target"],
    asked_for: Int64[Tensor, " target"],
    mask: Bool[Tensor, "target target"],
    name: Callable[[int], str],
) -> Drawing:
    """Draw one pass over a right answer: a row for each question, what it sees, what it is asked.

    Args:
        reads: the ids that go in, (target,).
        asked_for: the ids that the rows are compared with, (target,).
        mask: True = may attend, (target, target).
        name: of an id.

    Example:
        >>> import torch
        >>> from attention import causal_mask
        >>> from attention.drawings import teacher_forcing
        >>> ids = torch.tensor([0, 3, 1, 2])
        >>> teacher_forcing(ids[:-1], ids[1:], causal_mask(3), str)
        Drawing of sees (3, 3)
    """
    goes_in, compared = ([name(int(i)) for i in ids] for ids in (reads, asked_for))
    sees = mask.double()
    size = len(goes_in)

    def paint(canvas: Canvas) -> Real:
        left, right, gap = (6, 48, 8) if canvas.narrow else (90, 150, 14)
        wide, high = (canvas.width - left - right) / size, 22
        beside, top = left + size * wide + gap, 62
        canvas.text(left, 18, "what goes in", "bold", size=12, anchor="start")
        canvas.text(beside + 38, 18, "compared", "output of bold", size=12, anchor="end")
        shades = {"cell": (wide, high), "largest": 2.5, "digits": None}
        canvas.matrix("sees", left, top, sees, "weights", **shades)
        canvas.text(left + size * wide - 12, top + 36, "hidden", "quiet", size=12, anchor="end")
        for t, (sign, answer) in enumerate(zip(goes_in, compared, strict=True)):
            x, y = left + t * wide, top + t * high
            canvas.rectangle(x, 28, wide - 1, high, "edge")
            canvas.text(x + wide / 2, 43, sign, size=11)
            for s in mask[t].nonzero()[:, 0].tolist():
                canvas.text(left + (s + 0.5) * wide, y + 15, goes_in[s], size=11)
            if t + 1 < size and not mask[t, t + 1]:
                canvas.rectangle(x + wide, y, wide - 1, high - 1, "edge", stroke_dasharray="3 3")
                canvas.text(x + 1.5 * wide, y + 15, goes_in[t + 1], "quiet", size=11)
            canvas.rectangle(beside, y, 38, high - 1, "output stroke")
            canvas.text(beside + 19, y + 15, answer, "output of bold", size=11)
        return top + size * high + 10

    told = "; ".join(
        f"the row that sees {' '.join(goes_in[s] for s in row.nonzero()[:, 0].tolist())} is "
        f"compared with {answer}"
        for row, answer in zip(mask, compared, strict=True)
    )
    alt = f"What goes in: {' '.join(goes_in)}. One pass answers {size} questions: {told}."
    return Drawing(paint, alt, {"sees": sees})
