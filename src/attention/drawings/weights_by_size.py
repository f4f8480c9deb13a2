"""How open a head starts: the largest weights of a row at several d_key, unscaled and scaled."""

from collections.abc import Mapping
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing

SHOWN = 10  # of a row's weights, the largest first


def weights_by_size(scores: Mapping[int, Float[Tensor, "*sample key"]]) -> Drawing:
    """Draw the largest weights of rows of unscaled scores, with and without the divisor.

    Each bar is the mean over all rows: of their largest weight, of their second largest, …

    Args:
        scores: unscaled, (…, key), by d_key.

    Example:
        >>> import torch
        >>> from attention.drawings import weights_by_size
        >>> weights_by_size({4: torch.zeros(5, 2), 64: torch.zeros(5, 2)})
        Drawing of d_key 4, unscaled (2,), d_key 4, scaled (2,), d_key 64, unscaled (2,), \
d_key 64, scaled (2,)
    """
    values = {}
    for d_key, unscaled in scores.items():
        for how, divisor in (("unscaled", 1), ("scaled", d_key**0.5)):
            weights = (unscaled / divisor).softmax(dim=-1).sort(dim=-1, descending=True).values
            values[f"d_key {d_key}, {how}"] = weights.flatten(0, -2).mean(dim=0)[:SHOWN]
    n_keys = next(iter(scores.values())).shape[-1]
    rows = ("unscaled", "weights", "not divided"), ("scaled", "weights", "divided by √d_key")

    def paint(canvas: Canvas) -> Real:
        narrow = canvas.narrow
        share = canvas.width / (2 if narrow else len(scores))
        tall, bar = (84, 13) if narrow else (96, 18)
        # A row of charts is as high as its highest bar.
        high = max(float(values[f"d_key {d_key}, scaled"][0]) for d_key in scores)
        lines = 52 + tall, 52 + tall + tall * high + 50
        words = f"the {SHOWN} largest of {n_keys} weights, before training"
        canvas.text(canvas.width / 2, 16, words, "quiet", size=12)
        for nth, d_key in enumerate(scores):
            for which, (how, look, words) in enumerate(rows):
                column, row = (which, nth) if narrow else (nth, which)
                left = share * column + (share - bar * SHOWN) / 2
                line = 52 + tall + (tall + 48) * row if narrow else lines[row]
                name = f"d_key {d_key}, {how}"
                weights = values[name]
                middle = left + bar * SHOWN / 2
                if which == 0:
                    title = canvas.width / 2 if narrow else middle
                    canvas.text(title, line - tall - 12, f"d_key {d_key}", "bold", size=13)
                canvas.bars(
                    name, left, line, weights.tolist(), look, unit=tall, wide=bar, digits=None
                )
                first = left + bar * 0.35 + (bar * 0.9)
                at = line - tall * float(weights[0]) + 12
                at = min(at, line - tall * float(weights[1]) - 5)
                canvas.text(
                    first, at, f"{weights[0]:.2f}", f"{look} of bold", size=13, anchor="start"
                )
                canvas.text(middle, line + 16, words, "quiet", size=12)
        return line + 28

    told = "; ".join(
        f"d_key {d_key}: {values[f'd_key {d_key}, unscaled'][0]:.2f} unscaled, "
        f"{values[f'd_key {d_key}, scaled'][0]:.2f} divided by its root"
        for d_key in scores
    )
    alt = (
        f"The {SHOWN} largest of {n_keys} weights before training, the largest first, at each "
        f"d_key, unscaled and divided by √d_key. The largest: {told}."
    )
    return Drawing(paint, alt, values)
