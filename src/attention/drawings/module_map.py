"""The map of Part I: from words to answers, what each chapter builds lit."""

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import torch

from attention.drawings.drawing import Box, Canvas, Drawing, point
from attention.example import running_example
from attention.trained.who_and_whom import find_verbs, load

UNIT = 5  # of a cell: X of the running example is 6 by 8
ABOVE, BELOW, PITCH = 36, 70, 126  # of a line of the map, from the middle of its boxes
SENTENCE = 1  # "a dog chased the red ball": who and whom are two words


class Piece(NamedTuple):
    """A piece of the map: a tensor of the running example, or words.

    Attributes:
        name: below it.
        chapters: those that make it.
        look: its colour, or that of each copy, the foremost first.
        shape: (rows, columns); None for words.
        axes: the names of both.
        copies: one for each head, or for each of Q, K and V.
        step: what leads to it, beside the arrow.
        words: instead of a box.
    """

    name: str
    chapters: tuple[int, ...]
    look: str | tuple[str, ...]
    shape: tuple[int, int] | None = None
    axes: tuple[str, str] = ("", "")
    copies: int = 1
    step: str = ""
    words: tuple[str, ...] = ()


def pieces() -> list[Piece]:
    """The pieces, in the order of the computation, in the sizes of the running example."""
    example = running_example()
    (_, seq, d_model), n_heads = example.x.shape, example.attention.n_heads
    d_key = example.attention.d_key
    tokens = example.tokens[SENTENCE]
    asked = [" ".join(tokens[at : at + 2]) for at in range(0, seq, 2)]
    answer = load(d_model, n_heads)(
        example.token_ids[SENTENCE : SENTENCE + 1], torch.tensor(find_verbs(tokens))
    )
    best = [answer.who.argmax().item(), answer.whom.argmax().item()]
    who, whom = example.vocabulary.decode(best)
    each_head = tuple(f"head-{nth}" for nth in range(n_heads))
    whole, one_head, pairs = ("seq", "d_model"), ("seq", "d_key"), ("query", "key")
    return [
        Piece("words", (1,), "x", words=tuple(asked)),
        Piece("X", (1,), "x", (seq, d_model), whole, step="embed"),
        Piece("Q, K, V", (2,), ("q", "k", "v"), (seq, d_model), whole, 3, "project"),
        Piece("heads", (3,), each_head, (seq, d_key), one_head, n_heads, "split"),
        Piece("scores", (4,), "scores", (seq, seq), pairs, n_heads, "q · k ÷ √d_key"),
        Piece("weights", (4, 5), "weights", (seq, seq), pairs, n_heads, "mask, softmax"),
        Piece("sums", (6,), "v", (seq, d_key), one_head, n_heads, "sum"),
        Piece("merged", (6,), "output", (seq, d_model), whole, step="merge"),
        Piece("output", (6,), "output", (seq, d_model), whole, step="W_o"),
        Piece("row", (7,), "output", (1, d_model), ("", "d_model"), step="of the verb"),
        Piece("answers", (7,), "x", step="read", words=(f"who: {who}", f"whom: {whom}")),
    ]


def module_map(lit: int | None = None, *, mistakes: Sequence[str] = ()) -> Drawing:
    """Draw the way from words to answers.

    Each piece is a link to its chapter. The way turns at the end of each line.

    Args:
        lit: the chapter, 1 to 7, whose pieces are lit: those before it are plain, those after it
            faint. None for the whole map.
        mistakes: names of pieces. At the step that makes each stands a red mark, with the number
            of its place in this list.

    Example:
        >>> from attention.drawings import module_map
        >>> module_map(3)
        Drawing of no numbers
    """
    shown = pieces()
    names = [piece.name for piece in shown]

    def numbers(piece: Piece) -> list[int]:
        return [number for number, name in enumerate(mistakes, 1) if name == piece.name]

    def paint(canvas: Canvas) -> Real:
        across = 3 if canvas.narrow else 6
        middles = [place(canvas, nth, across) for nth in range(len(shown))]
        boxes = []
        for piece, (x, y) in zip(shown, middles, strict=True):
            boxes.append(paint_piece(canvas, piece, x, y, lit))
        for nth, piece in enumerate(shown[1:], 1):
            with canvas.group(faintness(piece, lit)):
                paint_step(canvas, piece.step, *boxes[nth - 1 : nth + 1], numbers(piece))
        heads, sums = (middles[names.index(name)] for name in ("heads", "sums"))
        with canvas.group(faintness(shown[names.index("sums")], lit)):
            paint_values(canvas, heads, sums)
        return middles[-1][1] + BELOW

    steps = "; ".join(f"{piece.step}: {told(piece)}" for piece in shown[1:])
    where = "" if lit is None else f" Lit: what chapter {lit} builds."
    made = {piece.step: ", ".join(map(str, numbers(piece))) for piece in shown if numbers(piece)}
    marks = "; ".join(f"{some} at {step}" for step, some in made.items())
    marked = f" Mistakes: {marks}." if mistakes else ""
    alt = f"The way through the module. {told(shown[0])}; {steps}.{where}{marked}"
    return Drawing(paint, alt, {})


def told(piece: Piece) -> str:
    """A piece in words."""
    return f"{piece.name}, {', '.join(piece.words) if piece.words else size(piece)}"


def size(piece: Piece) -> str:
    rows, columns = piece.shape
    return f"{piece.copies} × {rows} × {columns}" if piece.copies > 1 else f"{rows} × {columns}"


def place(canvas: Canvas, nth: int, across: int) -> tuple[Real, Real]:
    """The middle of a piece: every other line of the map runs back."""
    line, column = divmod(nth, across)
    column = across - 1 - column if line % 2 else column
    return canvas.width / across * (column + 0.5), ABOVE + PITCH * line


def faintness(piece: Piece, lit: int | None) -> str:
    return "faint" if lit is not None and min(piece.chapters) > lit else ""


def paint_piece(canvas: Canvas, piece: Piece, x: Real, y: Real, lit: int | None) -> Box:
    """Paint one piece about (x, y), a link."""
    is_lit = lit is None or lit in piece.chapters
    look = piece.look if is_lit else "x"
    chapter, *further = piece.chapters
    caption = y + (50 if piece.words else 64)
    with canvas.group(faintness(piece, lit)):
        with canvas.link(f"#chapter-{chapter}"):
            # All of it can be pointed at, what lies between its words too.
            canvas.rectangle(x - 32, y - ABOVE, 64, ABOVE + BELOW, "ground")
            box = (
                paint_words(canvas, piece, x, y)
                if piece.words
                else paint_tensor(canvas, piece, x, y, look)
            )
            text_look = f"{look if isinstance(look, str) else look[0]} of bold" if is_lit else ""
            canvas.text(x, y + 36, piece.name, text_look, size=12)
            label = f"chapter {chapter}" + ("," if further else "")
            canvas.text(x - 7 * len(further), caption, label, "quiet link", size=11)
        for nth, chapter in enumerate(further):
            with canvas.link(f"#chapter-{chapter}", f"{piece.name}, chapter {chapter}"):
                canvas.rectangle(x + 20 + 14 * nth, caption - 11, 24, 15, "ground")
                canvas.text(x + 25 + 14 * nth, caption, str(chapter), "quiet link", size=11)
    # The name of its rows' axis stands to the left of a box.
    left = 12 if piece.axes[0] else 0
    return Box(box.x - left, y - ABOVE, box.width + left, ABOVE + BELOW)


def paint_words(canvas: Canvas, piece: Piece, x: Real, y: Real) -> Box:
    high = 15 * len(piece.words)
    for nth, words in enumerate(piece.words):
        line = y - high / 2 + 11 + 15 * nth
        canvas.text(x, line, words, size=12)
    wide = 6.5 * max(map(len, piece.words))
    return Box(x - wide / 2, y - high / 2, wide, high)


def paint_tensor(canvas: Canvas, piece: Piece, x: Real, y: Real, look: str | tuple) -> Box:
    rows, columns = piece.shape
    behind = 4 * (piece.copies - 1)
    canvas.text(x, y + 50, size(piece), "quiet", size=11)
    corner = x - (columns * UNIT + behind) / 2, y - (rows * UNIT - behind) / 2
    how = {"unit": UNIT, "axes": piece.axes, "copies": piece.copies}
    return canvas.tensor(*corner, piece.shape, look, **how)


def paint_step(canvas: Canvas, step: str, before: Box, after: Box, mistakes: Sequence[int]) -> None:
    """Paint the arrow from one piece to the next, its name, and the mistakes made there."""
    lines = step.rsplit(" ", 1) if len(step) > 8 else [step]
    if before.y == after.y:
        y, back = before.y + ABOVE, after.x < before.x
        start, end = (before.x, after.right) if back else (before.right, after.x)
        away = -4 if back else 4
        canvas.arrow(start + away, y, end - away, y, "x", width=1)
        x = (start + end) / 2
        for nth, words in enumerate(reversed(lines)):
            canvas.text(x, y - 6 - 13 * nth, words, size=11)
        for nth, number in enumerate(mistakes):
            row, column = divmod(nth, 2)
            together = min(len(mistakes) - 2 * row, 2)
            canvas.mistake(x + 19 * (column - (together - 1) / 2), y + 14 + 19 * row, number)
    else:
        x, outwards = after.middle[0], 1 if after.middle[0] > canvas.width / 2 else -1
        canvas.arrow(x, before.bottom + 2, x, after.y, "x", width=1)
        anchor = "start" if outwards > 0 else "end"
        y = (before.bottom + after.y) / 2 + 5 - 6 * (len(lines) - 1)
        for nth, words in enumerate(lines):
            canvas.text(x + 8 * outwards, y + 13 * nth, words, size=11, anchor=anchor)
        for nth, number in enumerate(mistakes):
            canvas.mistake(x - (15 + 19 * nth) * outwards, (before.bottom + after.y) / 2, number)


def paint_values(canvas: Canvas, heads: tuple[Real, Real], sums: tuple[Real, Real]) -> None:
    """Paint the way of V, which no score touches: past the weights, to the sums."""
    (x, y), (end, below) = heads, sums
    y, end = y + BELOW + 2, end + (14 if end < x else -14)
    canvas.path(f"M{point(x, y)}V{y + 8}H{end}", "v stroke", stroke_width=1)
    canvas.arrow(end, y + 8, end, below - ABOVE, "v", width=1)
    canvas.text(x + (end - x) / 4, y + 20, "V", "v of bold", size=12)
