"""A transformer at work: the encoder reads once, then the decoder writes, one sign a step."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point, tenth

LETTERS, ENCODER, MEMORY, DECODER, SIGNS = 18, 30, 84, 196, 250  # where each line begins
HIGH = 34  # of a tower
MUCH = 0.1  # the weight from which a letter is named


def writing_steps(
    letters: Sequence[str], signs: Sequence[str], weights: Float[Tensor, "target key"]
) -> dict[str, Drawing]:
    """Draw an encoder that reads, then each step of a decoder that writes.

    Into every step flows what cross-attention takes from the letters, as wide as their weights.

    Args:
        letters: that are read.
        signs: that are written, one in each step.
        weights: of cross-attention in each step, (target, key).

    Example:
        >>> import torch
        >>> from attention.drawings import writing_steps
        >>> steps = writing_steps("may", ["0", "5"], torch.eye(3)[:2])
        >>> list(steps)
        ['0: reads', '1: writes 0', '2: writes 5']
        >>> steps["2: writes 5"]
        Drawing of weights (3,)
    """

    def draw(step: int) -> Drawing:
        row = weights[step - 1] if step else None
        looks = most_looked_at(letters, row) if step else ""

        def paint(canvas: Canvas) -> Real:
            left = 6 if canvas.narrow else 90
            across = (canvas.width - left - 6) / len(letters)
            columns = [left + (j + 0.5) * across for j in range(len(letters))]
            paint_reading(canvas, letters, columns, lit=not step)
            places = sign_places(canvas, left, len(signs))
            paint_writing(canvas, left, signs, step, places)
            if row is not None:
                y, end, bend = MEMORY + 21, places[step], (MEMORY + 21 + DECODER) / 2
                paths = [
                    f"M{point(x, y)}C{point(x, bend)} {point(end, bend)} {point(end, DECODER - 2)}"
                    for x in columns
                ]
                canvas.flows("weights", row.tolist(), paths, "weights", widest=26)
                words = left, SIGNS + 66, f"looks {looks}", "weights of"
                canvas.text(*words, size=12, anchor="start")
            return SIGNS + 82

        if not step:
            alt = (
                f"The encoder reads “{''.join(letters)}”, once, and leaves a row for each of the "
                f"{len(letters)} letters: the memory. The decoder has written nothing."
            )
            return Drawing(paint, alt, {})
        read = "".join(signs[: step - 1])
        alt = (
            f"The decoder reads <start>{f' and {read}' if read else ''}, looks at the rows of the "
            f"letters, {looks}, and writes {signs[step - 1]}."
        )
        return Drawing(paint, alt, {"weights": row})

    steps = [f"{nth}: writes {sign}" for nth, sign in enumerate(signs, start=1)]
    return {name: draw(nth) for nth, name in enumerate(["0: reads", *steps])}


def most_looked_at(letters: Sequence[str], row: Float[Tensor, " key"]) -> str:
    """The letters with much weight, in the order in which they stand."""
    much = [(letter, weight) for letter, weight in zip(letters, row, strict=True) if weight >= MUCH]
    named = ", ".join(
        f"{'space' if letter == ' ' else letter} {weight:.2f}" for letter, weight in much
    )
    return f"most at {named}" if much else "at no letter much"


def sign_places(canvas: Canvas, left: Real, count: int) -> list[Real]:
    """Where <start> and each sign stand: the first needs more room."""
    first = 46
    pitch = min(44, (canvas.width - left - 6 - first) / count)
    return [left + first / 2, *(left + first + (t + 0.5) * pitch for t in range(count))]


def paint_reading(
    canvas: Canvas, letters: Sequence[str], columns: Sequence[Real], *, lit: bool
) -> None:
    """Paint the letters, the encoder, and the rows that it leaves."""
    half = (columns[1] - columns[0]) / 2
    begin, wide = columns[0] - half, columns[-1] - columns[0] + 2 * half
    middle = begin + wide / 2
    for x, letter in zip(columns, letters, strict=True):
        canvas.text(x, LETTERS, letter, size=11 if canvas.narrow else 14)
    look = "output stroke" if lit else "edge"
    canvas.rectangle(begin, ENCODER, wide, HIGH, look, stroke_width=2 if lit else 1, rx=4)
    words = f"encoder: {'reads' if lit else 'has read'}, once"
    canvas.text(middle, ENCODER + 22, words, "output of bold" if lit else "quiet")
    canvas.arrow(middle, ENCODER + HIGH + 1, middle, MEMORY - 3, "output" if lit else "x")
    canvas.rectangle(begin, MEMORY, wide, 18, "v fill", fill_opacity=0.16)
    lines = "".join(f"M{point(x + half, MEMORY)}v18" for x in columns[:-1])
    canvas.path(f"M{point(begin, MEMORY)}h{tenth(wide)}v18h{tenth(-wide)}z{lines}", "v stroke")
    if canvas.narrow:
        beside = (middle + 14, ENCODER + HIGH + 14, "start")
    else:
        beside = (8, MEMORY + 14, "start")
    canvas.text(*beside[:2], "memory", "v of bold", size=12, anchor=beside[2])


def paint_writing(
    canvas: Canvas, left: Real, signs: Sequence[str], step: int, places: Sequence[Real]
) -> None:
    """Paint the decoder, the signs that it reads and the one that it writes."""
    wide = canvas.width - left - 6
    look = "output stroke" if step else "edge"
    canvas.rectangle(left, DECODER, wide, HIGH, look, stroke_width=2 if step else 1, rx=4)
    words = f"decoder: step {step} of {len(signs)}" if step else "decoder: waits"
    canvas.text(left + wide / 2, DECODER + 22, words, "output of bold" if step else "quiet")
    if not canvas.narrow:
        canvas.text(8, SIGNS + 22, "signs", "quiet", size=12, anchor="start")
    for nth, (x, sign) in enumerate(zip(places, ["<start>", *signs], strict=True)):
        if nth < step:
            canvas.arrow(x, SIGNS + 8, x, DECODER + HIGH + 2, "q", width=1)
            canvas.text(x, SIGNS + 24, sign, size=12)
    if step:
        x = places[step]
        canvas.arrow(x, DECODER + HIGH + 2, x, SIGNS + 8, "output", width=2)
        canvas.text(x, SIGNS + 24, signs[step - 1], "output of bold", size=14)
        canvas.text(places[0], SIGNS + 42, "reads", "q of", size=12)
        canvas.text(x, SIGNS + 42, "writes", "output of", size=12)
