"""What a head looks for: the score of a noun and of another word in each seat, verb by verb."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point

HIGH = 110  # of the tallest panel of a head


def score_by_seat(
    scores: Float[Tensor, "asker heads word seat"],
    words: Sequence[str],
    askers: Sequence[tuple[str, int]],
    answers: Sequence[tuple[str, Sequence[int]]],
) -> Drawing:
    """Draw, in a panel for each head and each verb that asks, the score of two words in each seat.

    Args:
        scores: (asker, heads, word, seat).
        words: two; the first is a noun.
        askers: each verb that asks, and its seat.
        answers: for each head, what it answers, and how many seats after the verb the noun stands
            that is the answer (before it: below zero).

    Example:
        >>> import torch
        >>> from attention.drawings import score_by_seat
        >>> scores = torch.ones(2, 1, 2, 6)
        >>> score_by_seat(scores, ["cat", "the"], [("saw", 2), ("bit", 4)], [("who", [-1])])
        Drawing of head 0, saw, cat (6,), head 0, saw, the (6,), head 0, bit, cat (6,), \
head 0, bit, the (6,)
    """
    n_askers, n_heads, _, n_seats = scores.shape
    values = {
        f"head {h}, {asker}, {word}": scores[a, h, w]
        for h in range(n_heads)
        for a, (asker, _) in enumerate(askers)
        for w, word in enumerate(words)
    }
    highs = scores.amax(dim=(-2, -1)).clamp(min=0).tolist()  # (asker, heads), the line of 0 within
    lows = scores.amin(dim=(-2, -1)).clamp(max=0).tolist()

    def paint(canvas: Canvas) -> Real:
        across = 1 if canvas.narrow else n_askers
        share = canvas.width / across
        step = (share - 84) / (n_seats - 1)
        for h, (answer, offsets) in enumerate(answers):
            # One scale for a head's panels: its hills can be compared.
            unit = HIGH / max(highs[a][h] - lows[a][h] for a in range(n_askers))
            for a, (asker, seat) in enumerate(askers):
                column, row = (0, n_askers * h + a) if canvas.narrow else (a, h)
                left, top = 34 + share * column, 60 + (HIGH + 118) * row
                xs = [left + step * nth for nth in range(n_seats)]
                zero, bottom = top + unit * highs[a][h], top + HIGH + 26
                title = f"head {h}, “{asker}” asks"
                canvas.text(left - 24, top - 34, title, f"head-{h} of bold", anchor="start")
                first, last = (xs[seat + end(offsets)] for end in (min, max))
                band = first - step * 0.45, top - 12, last - first + step * 0.9, HIGH + 22
                canvas.rectangle(*band, f"head-{h} fill", fill_opacity=0.25)
                canvas.text((first + last) / 2, top - 16, answer, f"head-{h} of bold", size=12)
                canvas.path(f"M{point(xs[0] - 8, zero)}H{xs[-1] + 8:g}", "edge")
                canvas.text(xs[0] - 12, zero + 4, "0", "quiet", size=11, anchor="end")
                for w, word in enumerate(words):
                    line = scores[a, h, w].tolist()
                    look = "quiet" if w else f"head-{h}"
                    heights = zip(xs, line, strict=True)
                    d = "L".join(point(x, zero - unit * y) for x, y in heights)
                    canvas.path(f"M{d}", "edge" if w else f"{look} stroke", stroke_width=1.5)
                    name = f"head {h}, {asker}, {word}"
                    dots = look if w else f"{look} fill"
                    canvas.points(name, xs, zero, line, dots, unit=unit, radius=2.5 if w else 4)
                    place = xs[-1] + 12, zero - unit * line[-1] + 4
                    of = look if w else f"{look} of bold"
                    canvas.text(*place, word, of, size=12, anchor="start")
                for nth, x in enumerate(xs):
                    canvas.text(x, bottom, str(nth), "" if nth == seat else "quiet", size=11)
                canvas.text(xs[-1] + 12, bottom, "seat", "quiet", size=11, anchor="start")
                canvas.text(xs[seat], bottom + 16, asker, "bold", size=12)
        return bottom + 26

    told = []
    for h, (answer, offsets) in enumerate(answers):
        for a, (asker, seat) in enumerate(askers):
            there = [
                " and ".join(f"{scores[a, h, w, seat + off]:.1f}" for off in offsets)
                for w in range(len(words))
            ]
            seats = " and ".join(str(seat + off) for off in offsets)
            told.append(
                f"Head {h}, “{asker}” asks from seat {seat}: where {answer} stands, seat {seats}, "
                f"“{words[0]}” scores {there[0]} and “{words[1]}” {there[1]}."
            )
    alt = (
        f"A panel for each head and each verb that asks: the scores of “{words[0]}” and of "
        f"“{words[1]}” in seats 0 to {n_seats - 1}, two lines of one shape, that of "
        f"“{words[1]}” lower. {' '.join(told)}"
    ).replace(" -", " −")
    return Drawing(paint, alt, values)
