"""What goes through layers and steps: rows, gradients, questions, and who is heard."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import NamedTuple

import drawsvg
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing, point, tenth

WIDEST = 26  # the width of an arrow that brings a gradient of 1
LOOKS = ("x", "output", "weights", "scores", "q")  # of the answers, the row, and so on


def gradients_way_back(gradients: Mapping[str, Float[Tensor, "..."]]) -> Drawing:
    """Draw how much of the gradient arrives at each tensor on the way from the loss to W_Q.

    Args:
        gradients: of the loss with respect to the answers, the row that they are read off, the
            weights, the scores, and W_Q, by their names and in this order. The largest entry of
            each is drawn, without its sign.

    Example:
        >>> import torch
        >>> from attention.drawings import gradients_way_back
        >>> names = ["answers", "row", "weights", "scores", "W_Q"]
        >>> gradients_way_back({name: 0.5 * torch.eye(2) for name in names})
        Drawing of largest (5,)
    """
    largest = torch.stack([gradient.abs().max() for gradient in gradients.values()])
    sizes = largest.tolist()

    def paint(canvas: Canvas) -> Real:
        stations = list(zip(["loss", *gradients], ["x", *LOOKS], strict=True))
        forward = "forward: the loss is computed"
        if canvas.narrow:
            boxes = [Box(20, 40 + 68 * nth, 150, 30) for nth in range(len(stations))]
            numbers = [(box.right + 12, box.y + 20) for box in boxes[1:]]
            anchor, foot = "start", 16
            x, bottom = boxes[-1].right + 110, boxes[-1].bottom
            canvas.arrow(x, bottom, x, 40, width=1)
            canvas.upright(x + 16, (40 + bottom) / 2, forward, "quiet")
            canvas.text(20, 22, "backward: largest gradient that arrives", size=12, anchor="start")
        else:
            step = (canvas.width - 8 - 86) / (len(stations) - 1)
            boxes = [Box(4 + step * nth, 48, 86, 40) for nth in range(len(stations))]
            numbers = [(box.middle[0], box.bottom + 20) for box in boxes[1:]]
            anchor, foot = "middle", 60
            x, bottom = canvas.width / 2, boxes[-1].bottom
            canvas.arrow(boxes[-1].right, 28, 4, 28, width=1)
            canvas.text(x, 18, forward, "quiet", size=12)
            said = "backward: each arrow as wide as the largest gradient that arrives"
            canvas.text(x, bottom + 48, said, size=12)
        shafts, heads = [], []
        for box, after, size in zip(boxes, boxes[1:], sizes, strict=False):
            x, y = box.middle
            half = WIDEST * size / 2 + 4  # of an arrow's head
            if canvas.narrow:
                neck = after.y - 12
                shafts.append(f"M{point(x, box.bottom + 3)}V{neck:.1f}")
                corners = point(x - half, neck), point(x, neck + 10), point(x + half, neck)
            else:
                neck = after.x - 12
                shafts.append(f"M{point(box.right + 3, y)}H{neck:.1f}")
                corners = point(neck, y - half), point(neck + 10, y), point(neck, y + half)
            heads.append("L".join(corners))
        canvas.flows("largest", sizes, shafts, "x", widest=WIDEST)
        canvas.path(f"M{'ZM'.join(heads)}Z", "x fill", fill_opacity=0.55)
        for box, (name, look) in zip(boxes, stations, strict=True):
            canvas.rectangle(*box, f"{look} stroke")
            canvas.text(box.middle[0], box.middle[1] + 4, name, f"{look} of bold", size=12)
        for place, size in zip(numbers, sizes, strict=True):
            canvas.text(*place, f"{size:.3f}", "bold", anchor=anchor)
        return bottom + foot

    told = ", ".join(f"{size:.3f} at {name}" for name, size in zip(gradients, sizes, strict=True))
    alt = (
        "The gradient's way back from the loss, against the way that the loss is computed. The "
        f"largest gradient that arrives: {told}."
    )
    return Drawing(paint, alt, {"largest": largest})


class Stop(NamedTuple):
    """What a step reaches, and what leads there.

    Attributes:
        name: in the box.
        words: below it.
        arrow: what leads to it.
        look: of the box.
    """

    name: str
    words: str
    arrow: str = ""
    look: str = "x"


BEFORE, CONTEXT = Stop("s(t−1)", "state before"), Stop("c(t)", "context", "asks", "weights")
AFTER, SIGN = Stop("s(t)", "new state", "GRU"), Stop("sign", "written", "w_o")
ORDERS = {
    "Bahdanau: the state before the step asks": (BEFORE, CONTEXT, AFTER, SIGN),
    "Luong: the state after the step asks": (
        BEFORE,
        AFTER,
        CONTEXT,
        Stop("s̃(t)", "both joined", "w_c, tanh"),
        SIGN,
    ),
}
WIDE, HIGH = 52, 30  # of a box


def who_asks() -> Drawing:
    """Draw both orders of a decoder's step, with the question and what it brings lit.

    Example:
        >>> from attention.drawings import who_asks
        >>> who_asks()
        Drawing of no numbers
    """

    def paint(canvas: Canvas) -> Real:
        for nth, (title, stops) in enumerate(ORDERS.items()):
            if canvas.narrow:
                middle = canvas.width * (0.25 + 0.5 * nth)
                for line, words in enumerate(title.split(": ")):
                    look = "quiet" if line else "bold"
                    canvas.text(middle, 18 + 17 * line, words.removeprefix("the "), look, size=12)
                places = [(middle - 44, 64 + 66 * i) for i in range(len(stops))]
            else:
                y = 20 + 116 * nth
                canvas.text(8, y, title, "bold", anchor="start")
                places = [(42 + 136 * i, y + 42) for i in range(len(stops))]
            for stop, place, before in zip(stops, places, [None, *places], strict=False):
                paint_stop(canvas, stop, place, before)
        return places[-1][1] + (26 if canvas.narrow else 54)

    told = ". ".join(
        f"{title}: {stops[0].words} {stops[0].name}"
        + "".join(f", {stop.arrow}: {stop.words} {stop.name}" for stop in stops[1:])
        for title, stops in ORDERS.items()
    )
    return Drawing(paint, f"One step of a decoder, in two orders. {told}.", {})


def paint_stop(
    canvas: Canvas, stop: Stop, place: tuple[Real, Real], before: tuple[Real, Real] | None
) -> None:
    """Paint one box about its place, with its words, and what leads to it from the one before."""
    x, y = place
    box = canvas.rectangle(x - WIDE / 2, y - HIGH / 2, WIDE, HIGH, f"{stop.look} stroke")
    canvas.text(x, y + 5, stop.name, f"{stop.look} of bold", size=14)
    leads = f"{stop.look} of" if stop.look != "x" else ""
    if canvas.narrow:
        canvas.text(box.right + 6, y + 4, stop.words, "quiet", size=11, anchor="start")
        if before:
            canvas.arrow(x, before[1] + HIGH / 2 + 2, x, box.y - 2, stop.look)
            between = x + 10, (before[1] + y) / 2 + 4
            canvas.text(*between, stop.arrow, leads, size=12, anchor="start")
    else:
        canvas.text(x, box.bottom + 16, stop.words, "quiet", size=12)
        if before:
            canvas.arrow(before[0] + WIDE / 2 + 3, y, box.x - 3, y, stop.look)
            canvas.text((before[0] + x) / 2, y - 8, stop.arrow, leads, size=12)


UNIT = 1.7  # the width of a flow for each 1 of a row's length
DOWN = 92  # from a sublayer to the next


def residual_stream(
    rows: Float[Tensor, "row d_model"], token: str, sublayers: Sequence[str]
) -> Drawing:
    """Draw a token's row on its way through a pre-norm stack, as wide as it is long.

    Args:
        rows: the row as it comes, and as each sublayer leaves it, (row, d_model).
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
        stream, norm, sublayer, wide = (170, 280, 400, 140)
        adds, anchor = norm + 23, "middle"
        if canvas.narrow:
            stream, norm, sublayer, wide = (70, 118, 190, 118)
            adds, anchor = stream + 28, "start"
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
            canvas.text(adds, join - 16, f"adds {change:.1f}", size=12, anchor=anchor)
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


LAYER_HIGH, TITLE, GAP = 30, 26, 22  # of a layer, of a stack's title, between two stacks


def cone(stacks: Mapping[str, Sequence[Bool[Tensor, "_ _"]]]) -> Drawing:
    """Draw stacks of layers, and in each what leads to the last token of the highest.

    A row of dots is the tokens before the first layer or after one of the layers. A dot is full
    where the last token can have heard of it, and lines lead to it from the dots above that see it.

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
    """Paint one stack from its highest row down; returns where it ends."""
    n_rows, n_tokens = reached.shape
    start = 70
    pitch = (canvas.width - start - 12) / (n_tokens - 1)
    canvas.text(6, top + 14, title, "bold", anchor="start")
    highest = top + TITLE + 8

    def at(row: int, token: int) -> tuple[Real, Real]:
        return start + pitch * token, highest + LAYER_HIGH * (n_rows - 1 - row)

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
    return highest + LAYER_HIGH * (n_rows - 1) + 8
