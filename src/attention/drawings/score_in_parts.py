"""A score of the second layer as a strip of parts: what each reader of the key's row brings."""

from collections.abc import Mapping, Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing

LOOKS = ("x", "head-1", "head-0")  # of the token's own row, of what the heads wrote into it


def score_in_parts(
    parts: Mapping[str, Float[Tensor, " part"]], names: Sequence[str], key: str
) -> Drawing:
    """Draw the score that one key gets in each of a few sequences, as the parts it is the sum of.

    Without a norm between the layers a key is a sum, and so is its score.

    Args:
        parts: by the sequence, the part of the token's own row first, then those of what the
            heads wrote into it, that of head 1 before that of head 0, (part,).
        names: of the parts, three at most.
        key: the token whose score it is.

    Example:
        >>> import torch
        >>> from attention.drawings import score_in_parts
        >>> names = ["own row", "written by 0.1", "written by 0.0"]
        >>> score_in_parts({"kxk": torch.tensor([2.0, 13, -0.3])}, names, "x")
        Drawing of kxk (3,)
    """
    looks = LOOKS[: len(names)]
    totals = {text: float(values.sum()) for text, values in parts.items()}

    def paint(canvas: Canvas) -> Real:
        edge, down = (6, 114) if canvas.narrow else (104, 92)
        longest = max(float(values.clamp(min=0).sum()) for values in parts.values())
        unit = (canvas.width - edge - 56) / longest
        y = 40 if canvas.narrow else 24
        for text, values in parts.items():
            if canvas.narrow:
                canvas.text(edge, y - 10, text, "bold", anchor="start")
            else:
                canvas.text(edge - 12, y + 17, text, "bold", anchor="end")
            boxes = canvas.strip(text, edge, y, values.tolist(), looks, unit=unit)
            end = max(box.right for box in boxes)
            canvas.text(end + 6, y + 17, f"{totals[text]:.1f}", "scores of bold", anchor="start")
            for nth, (name, look, value) in enumerate(
                zip(names, looks, values.tolist(), strict=True)
            ):
                number = f"{value:.1f}".replace("-", "−")
                words = edge, y + 42 + 16 * nth, f"{name} {number}", f"{look} of"
                canvas.text(*words, size=12, anchor="start")
            y += down
        return y - (26 if canvas.narrow else 8)

    told = "; ".join(
        f"in {text} {totals[text]:.1f}, of which "
        + ", ".join(
            f"{name} {value:.1f}" for name, value in zip(names, values.tolist(), strict=True)
        )
        for text, values in parts.items()
    )
    alt = f"The score of {key} as a strip of its parts: {told}."
    return Drawing(paint, alt, parts)
