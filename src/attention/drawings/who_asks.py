"""One step of a recurrent decoder, in Bahdanau's order and in Luong's: which state asks."""

from numbers import Real
from typing import NamedTuple

from attention.drawings.drawing import Canvas, Drawing


class Stop(NamedTuple):
    """What a step comes to, and what leads there.

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
    """Draw both orders, the question and what it brings lit.

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
            for i, (stop, place) in enumerate(zip(stops, places, strict=True)):
                paint_stop(canvas, stop, *place)
                if i:
                    paint_arrow(canvas, stop, places[i - 1], place)
        return 64 + 66 * 4 + 26 if canvas.narrow else 232

    told = ". ".join(
        f"{title}: {stops[0].words} {stops[0].name}"
        + "".join(f", {stop.arrow}: {stop.words} {stop.name}" for stop in stops[1:])
        for title, stops in ORDERS.items()
    )
    return Drawing(paint, f"One step of a decoder, in two orders. {told}.", {})


def paint_stop(canvas: Canvas, stop: Stop, x: Real, y: Real) -> None:
    """Paint one box about (x, y), with its words."""
    canvas.rectangle(x - WIDE / 2, y - HIGH / 2, WIDE, HIGH, f"{stop.look} stroke")
    canvas.text(x, y + 5, stop.name, f"{stop.look} of bold", size=14)
    if canvas.narrow:
        canvas.text(x + WIDE / 2 + 6, y + 4, stop.words, "quiet", size=11, anchor="start")
    else:
        canvas.text(x, y + HIGH / 2 + 16, stop.words, "quiet", size=12)


def paint_arrow(
    canvas: Canvas, stop: Stop, start: tuple[Real, Real], end: tuple[Real, Real]
) -> None:
    """Paint what leads to a box, and its name."""
    (x, y), (right, down) = start, end
    look, words = stop.look, f"{stop.look} of" if stop.look != "x" else ""
    if canvas.narrow:
        canvas.arrow(x, y + HIGH / 2 + 2, x, down - HIGH / 2 - 2, look)
        canvas.text(x + 10, (y + down) / 2 + 4, stop.arrow, words, size=12, anchor="start")
    else:
        canvas.arrow(x + WIDE / 2 + 3, y, right - WIDE / 2 - 3, y, look)
        canvas.text((x + right) / 2, y - 8, stop.arrow, words, size=12)
