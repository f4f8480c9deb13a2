"""Induction in two layers: one head writes into each row what stood before it, another finds it."""

from collections.abc import Sequence
from numbers import Real

from jaxtyping import Float
from torch import Tensor

from attention.drawings.drawing import Canvas, Drawing, point, tenth

TOKENS, ROWS, NEXT = 42, 152, 258  # the middles of the three lines
WIDEST = 15  # of a flow


def write_match_copy(
    tokens: Sequence[str],
    previous: Float[Tensor, "query key"],
    scores: Float[Tensor, " key"],
    answer: str,
) -> Drawing:
    """Draw how the last token finds what followed it last time: writes, matches, copies.

    Args:
        tokens: of the sequence.
        previous: the weights of the previous-token head, (query, key).
        scores: of the induction head, of the last token with each key, (key,).
        answer: the token that the model says comes next.

    Source:
        Elhage et al. 2021, "Induction Heads".

    Example:
        >>> import torch
        >>> from attention.drawings import write_match_copy
        >>> back = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])
        >>> write_match_copy("kxk", back, torch.tensor([0.0, 9, 0]), "x")
        Drawing of writes (3,), writes elsewhere (2, 3), copies (3,)
    """
    weights = scores.softmax(dim=-1)
    found, last = int(weights.argmax()), len(tokens) - 1
    written = [tokens[int(row.argmax())] for row in previous]
    elsewhere = previous[[i for i in range(len(tokens)) if i != found]]
    writes, copies = f"{previous[found].max():.2f}", f"{weights[found]:.2f}"
    matches = f"{scores[found]:.1f}"

    def paint(canvas: Canvas) -> Real:
        left, wide = (18, 38) if canvas.narrow else (104, 54)
        pitch = (canvas.width - left - 6) / len(tokens)
        columns = [left + (j + 0.5) * pitch for j in range(len(tokens))]
        for y, words in ((TOKENS, "tokens"), (ROWS, "after layer 0"), (NEXT, "comes next")):
            if canvas.narrow:
                canvas.upright(12, y, words, "quiet")
            else:
                canvas.text(8, y + 5, words, "quiet", size=12, anchor="start")
        lines = [
            [f"M{point(x, TOKENS + 17)}L{point(end + wide / 4, ROWS - 17)}" for x in columns]
            for end in columns
        ]
        others = [path for i, line in enumerate(lines) if i != found for path in line]
        flat = elsewhere.flatten().tolist()
        canvas.flows("writes elsewhere", flat, others, "x", widest=WIDEST / 7)
        canvas.flows("writes", previous[found].tolist(), lines[found], "k", widest=WIDEST)
        floor, end = tenth(NEXT - 30), tenth(columns[last] - 15)
        paths = [
            f"M{point(x, ROWS + 15)}V{floor}Q{point(x, NEXT)} {point(x + 30, NEXT)}H{end}"
            for x in (column - wide / 4 for column in columns)
        ]
        canvas.flows("copies", weights.tolist(), paths, "weights", widest=WIDEST)
        begin, end = columns[last] - wide / 4, columns[found] + wide / 4
        dip = ROWS + 56
        canvas.path(
            f"M{point(begin, ROWS + 17)}C{point(begin, dip)} {point(end, dip)} "
            f"{point(end, ROWS + 30)}",
            "q stroke",
            stroke_width=2,
        )
        canvas.arrow(end, ROWS + 31, end, ROWS + 18, "q", width=2)
        for x, token, copy in zip(columns, tokens, written, strict=True):
            canvas.rectangle(x - 14, TOKENS - 15, 28, 30, "ground")
            canvas.rectangle(x - 14, TOKENS - 15, 28, 30, "edge")
            canvas.text(x, TOKENS + 5, token, "bold", size=14)
            canvas.rectangle(x - wide / 2, ROWS - 15, wide, 30, "ground")
            lit = copy == tokens[last]
            shade = 0.3 if lit else 0.1
            canvas.rectangle(x, ROWS - 15, wide / 2, 30, "k fill", fill_opacity=shade)
            canvas.rectangle(x - wide / 2, ROWS - 15, wide, 30, "edge")
            canvas.text(x - wide / 4, ROWS + 5, token, "bold", size=14)
            canvas.text(x + wide / 4, ROWS + 5, copy, "k of bold" if lit else "quiet", size=13)
        x = columns[last]
        canvas.rectangle(x - 14, NEXT - 15, 28, 30, "output stroke", stroke_width=2)
        canvas.text(x, NEXT + 5, answer, "output of bold", size=14)
        middle = (begin + end) / 2
        beside = columns[found] + pitch / 2 + wide / 8
        canvas.rectangle(beside - 20, TOKENS + 36, 40, 34, "ground")
        canvas.text(beside, TOKENS + 50, "writes", "k of bold", size=12)
        canvas.text(beside, TOKENS + 65, writes, "k of", size=12)
        canvas.text(middle, ROWS + 36, f"matches, score {matches}", "q of bold", size=12)
        canvas.text(middle, NEXT - 16, f"copies {copies}", "weights of bold", size=12)
        return NEXT + 34

    alt = (
        f"The tokens {' '.join(tokens)} and, below them, their rows after layer 0. Each row holds "
        "its token and what the previous-token head wrote into it. "
        f"That head writes {written[found]} into the row of {tokens[found]}, with a weight of "
        f"{writes}. In layer 1 the last {tokens[last]} matches that row, with a score of "
        f"{matches}, and copies {tokens[found]} from it, with a weight of {copies}. The model says "
        f"{answer}."
    )
    values = {"writes": previous[found], "writes elsewhere": elsewhere, "copies": weights}
    return Drawing(paint, alt, values)
