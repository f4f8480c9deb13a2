"""Two readers and a writer, unrolled: through a neck of a few numbers, or looking back."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing, point, tenth


def readers_and_writer(
    letters: Sequence[str],
    encoded: Float[Tensor, "key key_dim"],
    signs: Sequence[str],
    answer: Sequence[str],
    weights: Float[Tensor, " key"] | None = None,
    step: int = 0,
) -> Drawing:
    """Draw what two recurrent networks have read at each letter, and what a third one gets of it.

    Without weights every step of the writer gets the last states. With weights one of its steps
    gets a flow from every letter, as wide as its weight.

    Args:
        letters: of the text.
        encoded: (key, key_dim), the reader from the left in the first half of the columns.
        signs: what the writer writes, one for each step.
        answer: what it should write.
        weights: of one step, (key,).
        step: which one, from 0.

    Example:
        >>> import torch
        >>> from attention.drawings import readers_and_writer
        >>> readers_and_writer("may", torch.ones(3, 2), ["0", "5"], ["0", "5"])
        Drawing of from the left (1, 3), from the right (1, 3), last states (2,)
    """
    half = encoded.shape[1] // 2
    readers = {"from the left": encoded[:, :half].T, "from the right": encoded[:, half:].T}
    # In the order in which they stand: the reader from the right ends at the first letter.
    last = encoded.new_tensor([*encoded[0, half:].tolist(), *encoded[-1, :half].tolist()])
    values = {**readers, **({"last states": last} if weights is None else {"weights": weights})}
    largest = float(encoded.abs().max())
    wrong = [sign != right for sign, right in zip(signs, answer, strict=True)]

    def paint(canvas: Canvas) -> Real:
        left = 6 if canvas.narrow else 104
        across = (canvas.width - left - 6) / len(letters)
        columns = [left + (j + 0.5) * across for j in range(len(letters))]
        y = 18
        for x, letter in zip(columns, letters, strict=True):
            canvas.text(x, y, letter, size=11 if canvas.narrow else 14)
        ends = []
        for name, states in readers.items():
            forwards = name == "from the left"
            if canvas.narrow:
                y += 22
                x, anchor = (left, "start") if forwards else (canvas.width - 6, "end")
                canvas.text(x, y, f"reader {name}", "quiet", size=12, anchor=anchor)
            else:
                y += 12
                canvas.text(8, y + 38, "reader", "quiet", size=12, anchor="start")
                canvas.text(8, y + 54, name, "quiet", size=12, anchor="start")
            start, tip = (left + 4, canvas.width - 10)[:: 1 if forwards else -1]
            canvas.arrow(start, y + 10, tip, y + 10)
            shades = {"cell": (across, 8), "largest": largest, "digits": None}
            box = canvas.matrix(name, left, y + 18, states, **shades)
            end = box.right - across + 1 if forwards else left
            ends.append(Box(end, box.y, across - 1, box.height))
            y = box.bottom
        if weights is None:
            y = paint_neck(canvas, last, largest, *ends)
        return paint_writer(canvas, signs, wrong, y, columns, weights, step)

    return Drawing(paint, told(letters, signs, answer, len(last), weights, step), values)


def paint_neck(
    canvas: Canvas, last: Float[Tensor, " key_dim"], largest: Real, from_left: Box, from_right: Box
) -> Real:
    """Paint the last states, side by side, and where they come from; returns where they end."""
    y, cell = from_right.bottom, 22 if canvas.narrow else 26
    begin = (canvas.width - cell * len(last)) / 2
    shades = {"cell": (cell, 24), "largest": largest, "digits": None}
    box = canvas.matrix("last states", begin, y + 56, last[None], **shades)
    for each in (from_left, from_right, box):
        canvas.rectangle(*each, "x stroke", stroke_width=2)
    ways = {
        box.x + box.width * 0.75: f"M{point(from_left.right, from_left.bottom - 4)}h3",
        box.x + box.width * 0.25: f"M{point(from_right.middle[0], y + 1)}",
    }
    for x, way in ways.items():
        canvas.path(f"{way}V{tenth(y + 30)}H{tenth(x)}", "x stroke", stroke_width=1.5)
        canvas.arrow(x, y + 30, x, box.y - 3)
    canvas.text(canvas.width / 2, y + 22, f"{len(last)} numbers, and nothing else", "bold")
    return box.bottom


def paint_writer(
    canvas: Canvas,
    signs: Sequence[str],
    wrong: Sequence[bool],
    y: Real,
    columns: Sequence[Real],
    weights: Float[Tensor, " key"] | None,
    step: int,
) -> Real:
    """Paint the steps of the writer below y, and what they get; returns the drawing's height."""
    pitch = min(58, (canvas.width - 12) / len(signs))
    wide, begin = pitch - (8 if canvas.narrow else 16), (canvas.width - pitch * len(signs)) / 2
    middles = [begin + (t + 0.5) * pitch for t in range(len(signs))]
    top = y + (56 if weights is None else 94)
    if weights is None:
        for x in middles:
            canvas.arrow(canvas.width / 2, y + 2, x, top - 3, "x faint", width=1)
    else:
        paths = []
        for nth, x in enumerate(columns):
            aside = wide * 0.7 * ((nth + 0.5) / len(columns) - 0.5)
            start, end, bend = tenth(x), tenth(middles[step] + aside), tenth((y + top) / 2)
            paths.append(
                f"M{start},{tenth(y + 2)}C{start},{bend} {end},{bend} {end},{tenth(top - 2)}"
            )
        canvas.flows("weights", weights.tolist(), paths, "weights", widest=18)
    canvas.text(begin, y + 18 if weights is None else top - 8, "writer", "quiet", anchor="start")
    for t, (x, sign) in enumerate(zip(middles, signs, strict=True)):
        lit = weights is None or t == step
        look = "weights stroke" if weights is not None and lit else "edge"
        canvas.rectangle(x - wide / 2, top, wide, 28, look)
        if t:
            canvas.arrow(middles[t - 1] + wide / 2 + 1, top + 14, x - wide / 2 - 1, top + 14)
        if t == 0 or (weights is not None and t in (step - 1, step)):
            canvas.text(x, top + 18, f"s{subscript(t + 1)}", "" if lit else "quiet", size=12)
        canvas.text(x, top + 48, sign, "mistake of bold" if wrong[t] else "bold" if lit else "")
        if wrong[t]:
            canvas.mistake(x, top + 64)
    if weights is not None and step:
        x = middles[step - 1]
        canvas.text(x - 4, top - 14, "asks", "q of bold", size=12, anchor="end")
        canvas.arrow(x, top - 2, x, top - 26, "q", width=2)
    return top + (80 if any(wrong) else 60)


def subscript(number: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


def told(
    letters: Sequence[str],
    signs: Sequence[str],
    answer: Sequence[str],
    count: int,
    weights: Tensor | None,
    step: int,
) -> str:
    """What is drawn, in the order of its arrows."""
    read = (
        f"Two readers go along “{''.join(letters)}”, one from the left and one from the right, and "
        "have a state at every letter."
    )
    if weights is None:
        wrong = sum(sign != right for sign, right in zip(signs, answer, strict=True))
        return (
            f"{read} Where each of them ends, its last state is taken: together {count} numbers. "
            f"They alone reach the writer, the same at each of its {len(signs)} steps. It writes "
            f"{''.join(signs)}, which is wrong at {wrong} of {len(signs)}."
        )
    parts = ", ".join(
        f"{weight:.2f} from letter {j}, “{letters[j]}”"
        for j, weight in enumerate(weights.tolist())
        if weight >= 0.05
    )
    asks = f"State {step} asks. " if step else ""
    return (
        f"{read} {asks}To step {step + 1} of the writer, which writes “{signs[step]}”, a flow "
        f"comes from every letter, as wide as its weight: {parts}."
    )
