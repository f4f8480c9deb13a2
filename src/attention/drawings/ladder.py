"""Keys of one number: each word on its rung, and only the two ends within reach of a query."""

from collections.abc import Mapping, Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point


def ladder(keys: Float[Tensor, " key"], words: Sequence[str], needs: Mapping[str, int]) -> Drawing:
    """Draw the keys of a head with d_key 1 as heights, and which words a query can put first.

    Args:
        keys: (key,), one number for each word.
        words: the words.
        needs: for each word that asks, the place of the word whose key should score highest.

    Example:
        >>> import torch
        >>> from attention.drawings import ladder
        >>> ladder(torch.tensor([2.0, 1.0, -1.0]), ["cat", "dog", "saw"], {"saw": 1})
        Drawing of keys (3,)
    """
    heights = keys.tolist()
    order = sorted(range(len(words)), key=lambda j: -heights[j])
    notes = {order[0]: ["any query above 0 finds this"], order[-1]: ["any below 0 finds this"]}
    for asker, j in needs.items():
        notes.setdefault(j, []).append(f"“{asker}” needs this")

    def paint(canvas: Canvas) -> Real:
        gap, unit, top = 17, 46, 44
        pole, beside = (40, 66) if canvas.narrow else (200, 240)
        zero = top + unit * heights[order[0]]
        canvas.text(pole, 20, "keys", "k of bold")
        canvas.path(f"M{point(pole, top - 12)}V{zero - unit * heights[order[-1]] + 12:.1f}", "edge")
        canvas.path(f"M{point(pole - 8, zero)}H{pole + 8}", "edge")
        canvas.text(pole - 12, zero + 4, "0", "quiet", size=11, anchor="end")
        y = top - gap
        for j in order:
            rung = zero - unit * heights[j]
            y = max(y + gap, rung)
            canvas.path(f"M{point(pole, rung)}L{point(beside - 6, y)}", "quiet edge")
            canvas.text(beside, y + 4, f"{words[j]} {j}", "k of bold", size=13, anchor="start")
            told = notes.get(j, [])
            for nth, note in enumerate(told if canvas.narrow else ["; ".join(told)] * bool(told)):
                y += 15 * (nth > 0)
                canvas.text(beside + 66, y + 4, note, size=12, anchor="start")
        canvas.points("keys", [pole] * len(words), zero, heights, "k fill", unit=unit)
        return y + 16

    rungs = ", ".join(f"{words[j]} {j} at {heights[j]:.2f}".replace("-", "−") for j in order)
    told = " ".join(f"{words[j]} {j}: {'; '.join(notes[j])}." for j in order if j in notes)
    return Drawing(paint, f"The keys as heights, from the top: {rungs}. {told}", {"keys": keys})
