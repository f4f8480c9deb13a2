"""Two sentences, the same average: a sum forgets which word stood in which seat."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Box, Canvas, Drawing, point


def same_average(
    sentences: Sequence[str],
    at: Sequence[int],
    words: Float[Tensor, "2 d_model"],
    seats: Float[Tensor, "2 d_model"],
) -> Drawing:
    """Draw the average of two rows of X, for a sentence and for the same with the two exchanged.

    Args:
        sentences: two, alike but for the words in the two seats, which are exchanged.
        at: the two seats.
        words: (word, d_model), what the words add to X, in the first sentence's order.
        seats: (seat, d_model), what the seats add.

    Example:
        >>> import torch
        >>> from attention.drawings import same_average
        >>> same_average(["dog saw cat", "cat saw dog"], [0, 2], torch.eye(2), torch.ones(2, 2))
        Drawing of first (4, 2), first average (1, 2), second (4, 2), second average (1, 2)
    """
    named = [[sentence.split()[seat] for seat in at] for sentence in sentences]
    # In each sentence's order: a word, its seat, the other word, its seat.
    terms = [(words[i], seats[0], words[1 - i], seats[1]) for i in range(2)]
    labels = [
        [f"½ {one}", f"½ seat {at[0]}", f"½ {other}", f"½ seat {at[1]}"] for one, other in named
    ]
    values = {}
    for which, four in zip(("first", "second"), terms, strict=True):
        values[which] = 0.5 * words.new_tensor([term.tolist() for term in four])
        values[f"{which} average"] = values[which].sum(dim=0, keepdim=True)
    largest = max(float(value.abs().max()) for value in values.values())

    def paint(canvas: Canvas) -> Real:
        cell = 30 if canvas.narrow else 29
        boxes: list[Box] = []
        for nth, which in enumerate(("first", "second")):
            is_right = nth == 1 and not canvas.narrow
            x = canvas.width - 72 - cell * words.shape[1] if is_right else 72
            y = 32 + (208 if canvas.narrow else 0) * nth
            canvas.text(x + cell * words.shape[1] / 2, y - 12, sentences[nth], "bold", size=13)
            box = canvas.matrix(
                *(which, x, y, values[which]), cell=(cell, 22), largest=largest, digits=1
            )
            average = y + 5.2 * 22
            below = canvas.matrix(
                f"{which} average",
                x,
                average,
                values[f"{which} average"],
                cell=(cell, 22),
                largest=largest,
                digits=1,
            )
            side = (box.right + 8, "start") if is_right else (x - 6, "end")
            for r, label in enumerate([*labels[nth], "average"]):
                beside = (y + 22 * r if r < 4 else average) + 15
                look = "bold" if r == 4 else ""
                canvas.text(side[0], beside, label, look, size=12, anchor=side[1])
            boxes += [box, below]
        left, left_sum, right, right_sum = boxes
        if canvas.narrow:
            middle = left_sum.middle[0], left_sum.bottom + 22
            canvas.text(*middle, "= the same numbers as", "bold", size=13)
        else:
            for row, other in enumerate((2, 1, 0, 3)):
                y1, y2 = (left.y + 22 * r + 11 for r in (row, other))
                d = f"M{point(left.right + 6, y1)}L{point(right.x - 6, y2)}"
                canvas.path(d, "quiet edge" if row % 2 else "x stroke", stroke_width=1.5)
            middle = canvas.width / 2, left_sum.middle[1] + 7
            canvas.text(*middle, "=", "bold", size=22)
        return right_sum.bottom + 8

    sides = "; ".join(
        f"“{sentence}”: {', '.join(four)}" for sentence, four in zip(sentences, labels, strict=True)
    )
    numbers = ", ".join(f"{value:z.1f}" for value in values["first average"][0].tolist())
    alt = (
        f"Two averages, each of four rows. {sides}. The same four rows stand in both, two of them "
        f"exchanged, so that both averages are the same: "
        f"{numbers.replace('-', '−')}."
    )
    return Drawing(paint, alt, values)
