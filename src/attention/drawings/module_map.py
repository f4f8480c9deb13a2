"""The map of Part I: from words to answers, what each chapter builds lit."""

from collections.abc import Sequence
from typing import NamedTuple

from attention.drawings.drawing import Box, Canvas, Drawing
from attention.example import running_example

UNIT = 4  # of a cell: X of the running example is 6 by 8


class Piece(NamedTuple):
    """A piece of the map: a tensor of the running example, or words.

    Attributes:
        name: below it.
        chapters: those that make it.
        look: its colour, or that of each copy, the foremost first.
        shape: (rows, columns); None for words.
        copies: one for each head, or for each of Q, K and V.
        step: what leads to it, over the arrow.
    """

    name: str
    chapters: tuple[int, ...]
    look: str | tuple[str, ...]
    shape: tuple[int, int] | None
    copies: int = 1
    step: str = ""


def pieces() -> list[Piece]:
    """The pieces, from left to right, in the sizes of the running example."""
    example = running_example()
    (_, seq, d_model), n_heads = example.x.shape, example.attention.n_heads
    d_key = example.attention.d_key
    return [
        Piece("words", (1,), "x", None),
        Piece("X", (1,), "x", (seq, d_model), step="embed"),
        Piece("Q, K, V", (2,), ("q", "k", "v"), (seq, d_model), 3, step="project"),
        Piece("heads", (3,), "k", (seq, d_key), n_heads, step="split"),
        Piece("scores", (4,), "scores", (seq, seq), n_heads, step="q · k"),
        Piece("weights", (4, 5), "weights", (seq, seq), n_heads, step="mask, softmax"),
        Piece("sums", (6,), "v", (seq, d_key), n_heads, step="· V"),
        Piece("merged", (6,), "output", (seq, d_model), step="merge"),
        Piece("output", (6,), "output", (seq, d_model), step="W_o"),
        Piece("row", (7,), "output", (1, d_model), step="of the verb"),
        Piece("answers", (7,), "x", None, step="read out"),
    ]


def module_map(lit: int | None = None, *, mistakes: Sequence[str] = ()) -> Drawing:
    """Draw the way from words to answers.

    Each piece is a link to its chapter.

    Args:
        lit: the chapter, 1 to 7, whose pieces are lit: those before it are plain, those after it
            faint. None for the whole map.
        mistakes: names of pieces; each gets the number of its place in this list.

    Example:
        >>> from attention.drawings import module_map
        >>> module_map(3)
        Drawing of no numbers
    """
    shown = pieces()

    def paint(canvas: Canvas) -> float:
        across = 4 if canvas.narrow else len(shown)
        share = canvas.width / across
        line = 106
        boxes: list[Box] = []
        for nth, piece in enumerate(shown):
            x, y = share * (nth % across + 0.5), 20 + line * (nth // across)
            chapter = piece.chapters[0]
            with canvas.link(f"#chapter-{chapter}", f"{piece.name}, chapter {chapter}"):
                boxes.append(paint_piece(canvas, piece, x, y, lit))
            if nth and nth % across:
                before = boxes[nth - 1]
                canvas.arrow(before.right + 3, y + 16, boxes[nth].x - 3, y + 16, "x", width=1)
        for number, name in enumerate(mistakes, 1):
            at = [piece.name for piece in shown].index(name)
            earlier = list(mistakes[: number - 1]).count(name)
            box = boxes[at]
            canvas.mistake(box.middle[0] + 18 * earlier - 9, box.bottom + 60, number)
        return 20 + line * ((len(shown) - 1) // across + 1) - (0 if mistakes else 10)

    where = "" if lit is None else f" Lit: what chapter {lit} builds."
    names = ", then ".join(
        f"{piece.step}: {piece.name}" if piece.step else piece.name for piece in shown
    )
    return Drawing(paint, f"The way through the module: {names}.{where}", {})


def paint_piece(canvas: Canvas, piece: Piece, x: float, y: float, lit: int | None) -> Box:
    """Paint one piece about x, from y downwards."""
    is_lit = lit is None or lit in piece.chapters
    faint = lit is not None and min(piece.chapters) > lit
    look = piece.look if is_lit else "x"
    foremost = look if isinstance(look, str) else look[0]
    with canvas.group("faint" if faint else ""):
        if piece.shape is None:
            lines = ("the cat", "saw …") if piece.name == "words" else ("who", "whom")
            for nth, word in enumerate(lines):
                canvas.text(x, y + 13 + 14 * nth, word, "bold" if is_lit else "quiet", size=12)
            box = Box(x - 19, y, 38, 32)
        else:
            rows, columns = piece.shape
            wide, high = columns * UNIT + 4 * (piece.copies - 1), rows * UNIT
            box = canvas.tensor(
                *(x - wide / 2, y + 16 - high / 2, piece.shape, look),
                unit=UNIT,
                copies=piece.copies,
            )
        canvas.text(x, y + 50, piece.name, f"{foremost} of bold" if is_lit else "quiet", size=12)
        if piece.step:
            canvas.text(x, y + 64, piece.step, "quiet", size=11)
        if piece.shape:
            size = f"{piece.shape[0]} × {piece.shape[1]}"
            shape = f"{piece.copies} of {size}" if piece.copies > 1 else size
            canvas.text(x, y + 78, shape, "quiet", size=11)
    return box
