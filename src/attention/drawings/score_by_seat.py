"""What a head looks for: the score of a noun and of another word in each seat."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point


def score_by_seat(
    scores: Float[Tensor, "asker heads word seat"],
    words: Sequence[str],
    askers: Sequence[str],
    answers: Sequence[tuple[str, Sequence[Sequence[int]]]],
) -> Drawing:
    """Draw for each head the score of two words in each seat, asked from two seats.

    Args:
        scores: (asker, heads, word, seat).
        words: two; the first is a noun.
        askers: two; what asks.
        answers: for each head, what stands in the seats that are shaded, and these seats, for each
            asker.

    Example:
        >>> import torch
        >>> from attention.drawings import score_by_seat
        >>> scores = torch.ones(2, 1, 2, 3)
        >>> score_by_seat(scores, ["cat", "the"], ["saw", "bit"], [("who", [[1], [2]])])
        Drawing of head 0, cat, saw (3,), head 0, the, saw (3,), head 0, cat, bit (3,), \
head 0, the, bit (3,)
    """
    _, n_heads, _, n_seats = scores.shape
    values = {
        f"head {h}, {word}, {asker}": scores[a, h, w]
        for h in range(n_heads)
        for a, asker in enumerate(askers)
        for w, word in enumerate(words)
    }
    high, low = float(scores.max()), min(0.0, float(scores.min()))

    def paint(canvas: Canvas) -> Real:
        unit = 230 / (high - low)
        share = canvas.width if canvas.narrow else canvas.width / 2
        top = 58
        for h, (answer, seats) in enumerate(answers):
            left = 34 if canvas.narrow else 34 + share * h
            above = top + (330 * h if canvas.narrow else 0)
            step = (share - 80) / (n_seats - 1)
            xs = [left + step * seat for seat in range(n_seats)]
            zero = above + unit * high
            canvas.text(
                left - 24, above - 40, f"scores of head {h}", f"head-{h} of bold", anchor="start"
            )
            for a, shaded in enumerate(seats):
                first = max(xs[min(shaded)] - step * 0.45, xs[0] - 10)
                last = min(xs[max(shaded)] + step * 0.45, xs[-1] + 10)
                place = first, above - 12, last - first, unit * (high - low) + 20
                canvas.rectangle(*place, f"head-{h} fill", fill_opacity=0.12)
                middle = (first + last) / 2
                canvas.text(middle, above - 18, answer, f"head-{h} of", size=12)
                look = f"head-{h} stroke" if a else f"head-{h} fill"
                canvas.path(circle(middle - 24, above - 22, 5 if a else 3), look)
            canvas.path(f"M{point(xs[0] - 8, zero)}H{xs[-1] + 8:g}", "edge")
            canvas.text(xs[0] - 12, zero + 4, "0", "quiet", size=11, anchor="end")
            for w, word in enumerate(words):
                look = "quiet" if w else f"head-{h}"
                for a, asker in enumerate(askers):
                    line = scores[a, h, w].tolist()
                    d = "L".join(point(x, zero - unit * y) for x, y in zip(xs, line, strict=True))
                    canvas.path(f"M{d}", "edge" if w else f"{look} stroke", stroke_width=1.5)
                    ring = (
                        f"{'x' if w else look} stroke"
                        if a
                        else f"{'quiet' if w else look + ' fill'}"
                    )
                    name = f"head {h}, {word}, {asker}"
                    dots = name, xs, zero, scores[a, h, w].tolist(), ring
                    canvas.points(*dots, unit=unit, radius=5 if a else 3)
                y = zero - unit * scores[:, h, w, -1].mean().item() + 4
                canvas.text(
                    xs[-1] + 12,
                    y,
                    word,
                    "quiet" if w else f"{look} of bold",
                    size=12,
                    anchor="start",
                )
            bottom = above + unit * (high - low) + 24
            for seat, x in enumerate(xs):
                canvas.text(x, bottom, str(seat), "quiet", size=11)
            canvas.text(xs[-1] + 12, bottom, "seat", "quiet", size=11, anchor="start")
        y = bottom + 26
        for a, asker in enumerate(askers):
            x = 20 if canvas.narrow else 34 + share * a
            at = y + (20 * a if canvas.narrow else 0)
            canvas.path(circle(x, at - 4, 5 if a else 3), "x stroke" if a else "x fill")
            canvas.text(x + 12, at, f"asked by {asker}", size=12, anchor="start")
        return at + 10

    told = []
    for h, (answer, seats) in enumerate(answers):
        for a, shaded in enumerate(seats):
            best = ", ".join(f"{scores[a, h, 0, seat]:.1f}" for seat in shaded)
            other = f"{scores[a, h, 1].max():.1f}"
            told.append(
                f"Head {h}, asked by {askers[a]}: where {answer} stands, seat "
                f"{' or '.join(map(str, shaded))}, “{words[0]}” scores {best}; “{words[1]}” "
                f"nowhere more than {other}.".replace("-", "−")
            )
    alt = (
        f"The score of “{words[0]}” and of “{words[1]}” in seats 0 to {n_seats - 1}. "
        f"{' '.join(told)} A dot: asked by {askers[0]}; a ring: by {askers[1]}."
    )
    return Drawing(paint, alt, values)


def circle(x: Real, y: Real, radius: Real) -> str:
    half = f"a{radius},{radius} 0 1 0"
    return f"M{point(x - radius, y)}{half} {2 * radius},0{half} {-2 * radius},0"
