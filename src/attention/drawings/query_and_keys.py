"""A query and keys as arrows: how far a key goes along the query is its score."""

from collections.abc import Sequence
from numbers import Real

import torch
from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point, tenth


def query_and_keys(
    query: Float[Tensor, "d_key"],
    keys: Float[Tensor, "key d_key"],
    asker: str,
    tokens: Sequence[str],
) -> Drawing:
    """Draw a query to the right, and each key at its own angle with it.

    Every key is turned about the query until it lies in the plane of the drawing: its length and
    its angle with the query stay what they are, and so does its dot product with the query.

    Args:
        query: (d_key,).
        keys: (key, d_key).
        asker: the word whose query it is.
        tokens: the words whose keys they are.

    Example:
        >>> import torch
        >>> from attention.drawings import query_and_keys
        >>> query_and_keys(torch.tensor([3.0, 4, 0]), torch.eye(3)[:2], "saw", ["cat", "dog"])
        Drawing of query (1, 2), keys (2, 2)
    """
    query, keys = query.double(), keys.double()
    length = query.norm()
    along = keys @ query / length  # (key,)
    aside = (keys - along[:, None] * query / length).norm(dim=-1)  # (key,)
    values = {
        "query": torch.tensor([[length, 0.0]], dtype=torch.float64),
        "keys": torch.stack((along, aside), dim=-1),
    }
    scores = (keys @ query).tolist()
    highest = float(aside.max())
    behind, ahead = max(-float(along.min()), 0), max(float(along.max()), float(length))

    def paint(canvas: Canvas) -> Real:
        room, words_wide = (24, 148) if canvas.narrow else (60, 210)
        across = (canvas.width - room - words_wide) / (behind + ahead)
        unit = min(across, 190 / highest) if highest else across
        above = highest * unit
        x, y = room + behind * unit, 26 + above
        canvas.vectors("query", [(x, y)], values["query"], "q", unit=unit, width=4)
        canvas.vectors("keys", [(x, y)] * len(keys), values["keys"], "k", unit=unit, width=3)
        canvas.text(x, y + 18, f"query of {asker}", "q of bold", anchor="start")
        ends = values["keys"].tolist()
        for nth, (token, score, (reach, off)) in enumerate(zip(tokens, scores, ends, strict=True)):
            end, top = x + reach * unit, y - off * unit
            canvas.path(f"M{point(end, top + 4)}V{y:.1f}", "cut")
            canvas.text(max(end, 46), top - 8, f"key of {token}", "k of bold")
            bar = y + 36 + 24 * nth
            canvas.path(f"M{point(x, bar)}H{tenth(end)}", "scores stroke", stroke_width=6)
            number = f"{score:.2f}".replace("-", "−")
            way = "" if canvas.narrow else f" points {direction(reach, off)}"
            words = f"{token}{way}: score {number}"
            right = x + max(float(along.max()), 0) * unit + 12
            canvas.text(right, bar + 5, words, "scores of bold", anchor="start")
        return y + 36 + 24 * len(keys)

    told = " ".join(
        f"The key of {token} points {direction(reach, off)}: it goes {abs(reach):.2f} "
        f"{'forwards' if reach > 0 else 'backwards'} along the query, and times the query's "
        f"length that is its score, {score:.2f}."
        for token, score, (reach, off) in zip(tokens, scores, values["keys"].tolist(), strict=True)
    )
    alt = f"The query of {asker} is an arrow to the right, {float(length):.2f} long. {told}"
    return Drawing(paint, alt, values)


def direction(along: Real, aside: Real) -> str:
    """Where a key points, seen from the query."""
    if abs(along) < aside:
        return "aside"
    return "along" if along > 0 else "away"
