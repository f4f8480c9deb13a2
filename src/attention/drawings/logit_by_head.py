"""The logit of an answer as a strip of parts: what each head brings, and the biases."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing


def logit_by_head(
    parts: Float[Tensor, "answer part"], answers: Sequence[tuple[str, str, str]]
) -> Drawing:
    """Draw the logit of each answer as the parts that it is the sum of.

    Args:
        parts: what each head brings, and last the biases.
        answers: (verb, question, word) of each row.

    Example:
        >>> import torch
        >>> from attention.drawings import logit_by_head
        >>> logit_by_head(torch.tensor([[2.0, 1.0, -0.5]]), [("sing", "who", "birds")])
        Drawing of sing who (3,)
    """
    values = {
        f"{verb} {question}": row for (verb, question, _), row in zip(answers, parts, strict=True)
    }
    n_heads = parts.shape[1] - 1
    looks = [f"head-{r}" for r in range(n_heads)] + ["x"]

    def paint(canvas: Canvas) -> Real:
        edge, line = (6, 62) if canvas.narrow else (168, 42)
        before = float(-parts.cumsum(dim=1).min().clamp(max=0))  # where a strip runs back at first
        unit = (canvas.width - edge - 60) / (float(parts.clamp(min=0).sum(dim=1).max()) + before)
        start = edge + before * unit
        y = 36 if canvas.narrow else 14
        for (verb, question, word), (name, row) in zip(answers, values.items(), strict=True):
            asked = f"{verb}, {question}: {word}"
            if canvas.narrow:
                canvas.text(edge, y - 8, asked, "bold", anchor="start")
            else:
                canvas.text(edge - 12, y + 17, asked, "bold", anchor="end")
            boxes = canvas.strip(name, start, y, row.tolist(), looks, unit=unit)
            for r, (box, value) in enumerate(zip(boxes, row.tolist(), strict=True)):
                full = f"head {r} {value:.2f}"
                if r < n_heads:
                    words = full if box.width > 7.5 * len(full) else f"{value:.2f}"
                    if box.width > 6.8 * len(words):
                        canvas.text(box.middle[0], y + 16, words, size=12)
            end = max(box.right for box in boxes)
            canvas.text(end + 6, y + 17, f"{float(row.sum()):.2f}", "bold", anchor="start")
            y += line
        under = y - 12 if canvas.narrow else y
        canvas.text(edge, under, "grey: the biases", "quiet", size=11, anchor="start")
        return under + 12

    told = "; ".join(
        f"{verb}, {question}: {word} {float(row.sum()):.2f}, of it "
        + ", ".join(f"head {r} {value:.2f}" for r, value in enumerate(row.tolist()[:n_heads]))
        for (verb, question, word), row in zip(answers, parts, strict=True)
    )
    alt = f"The logit of each answer as a strip: the heads’ parts, and that of the biases. {told}."
    return Drawing(paint, alt, values)
