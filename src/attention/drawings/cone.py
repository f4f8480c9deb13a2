"""Of whom the last token can have heard: through a stack of layers, each with its own mask."""

from collections.abc import Mapping, Sequence
from numbers import Real

import drawsvg
import torch
from jaxtyping import Bool
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, tenth

HIGH, TITLE, GAP = 30, 26, 22  # of a layer, of a stack's title, between two stacks


def cone(stacks: Mapping[str, Sequence[Bool[Tensor, "_ _"]]]) -> Drawing:
    """Draw stacks of layers, and in each what leads to the last token of the highest.

    A row of dots is the tokens before the first layer or after one of them. A dot is full where the
    last token can have heard of it, and lines lead to it from the dots above that see it.

    Args:
        stacks: by its title, the masks (query, key) of each stack's layers, the lowest first; True
            = may attend. A row itself goes on to the next layer in any case.

    Example:
        >>> import torch
        >>> from attention.drawings import cone
        >>> cone({"two layers": [torch.ones(4, 4).tril().bool()] * 2})
        Drawing of two layers (3, 4)
    """
    reached = {title: reach(masks) for title, masks in stacks.items()}

    def paint(canvas: Canvas) -> Real:
        top = 4
        for title, masks in stacks.items():
            top = paint_stack(canvas, title, masks, reached[title], top) + GAP
        return top - GAP + 6

    told = [
        f"{title}: {len(reached[title]) - 1} layers; the last token can have heard of the last "
        + f"{', '.join(str(int(row.sum())) for row in reached[title].flip(0)[1:])} of "
        + f"{reached[title].shape[1]} tokens, from the highest layer down."
        for title in stacks
    ]
    alt = f"What leads to the last token, layer by layer. {' '.join(told)}"
    return Drawing(paint, alt, {title: each.double() for title, each in reached.items()})


def reach(masks: Sequence[Bool[Tensor, "_ _"]]) -> Bool[Tensor, "rows _"]:
    """Which rows lead to the last token: before the first layer, and after each."""
    lead = torch.zeros(len(masks[0]), dtype=torch.bool)
    lead[-1] = True
    rows = [lead]
    for mask in reversed(masks):
        rows.append(rows[-1] | mask[rows[-1]].any(dim=0))
    return torch.stack(rows[::-1])


def paint_stack(
    canvas: Canvas,
    title: str,
    masks: Sequence[Bool[Tensor, "_ _"]],
    reached: Bool[Tensor, "rows _"],
    top: Real,
) -> Real:
    """Paint one stack from its highest row down; where it ends."""
    n_rows, n_tokens = reached.shape
    start = 70
    pitch = (canvas.width - start - 12) / (n_tokens - 1)
    canvas.text(6, top + 14, title, "bold", anchor="start")
    highest = top + TITLE + 8

    def at(row: int, token: int) -> tuple[Real, Real]:
        return start + pitch * token, highest + HIGH * (n_rows - 1 - row)

    for row in range(1, n_rows):
        for query in reached[row].nonzero().flatten().tolist():
            seen = masks[row - 1][query].clone()
            seen[query] = True
            for key in seen.nonzero().flatten().tolist():
                (x, y), (to_x, to_y) = at(row, query), at(row - 1, key)
                canvas.path(f"M{x},{y}L{to_x},{to_y}", "weights stroke faint", stroke_width=1)
    for row in range(n_rows):
        _, y = at(row, 0)
        name = "tokens" if row == 0 else f"layer {row}"
        canvas.text(start - 12, y + 4, name, "quiet", size=12, anchor="end")
        with canvas.group(data_layer=row):
            for token in range(n_tokens):
                x, _ = at(row, token)
                look = "weights fill" if reached[row, token] else "edge"
                canvas.add(drawsvg.Circle(tenth(x), tenth(y), 4, class_=look))
    return highest + HIGH * (n_rows - 1) + 8
