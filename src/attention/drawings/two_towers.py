"""The map of Part II: an encoder and a decoder, what each chapter builds lit."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import NamedTuple

from attention.drawings.drawing import Box, Canvas, Drawing, point
from attention.trained.dates import LETTERS, SIGNS, load

DATE, ISO = "sunday, march the 4th 1973", "1973-03-04"  # of chapter 13
UNIT = 1.6  # of a cell: the letters of the date are 26 by 48
HEIGHT, GROUND = 592, 552  # the foot of what goes in
FRAME, LOW = (80, 80), (80, 30)  # of an attention, of a feed-forward layer
POSITIONS, LAYER = 482, 460  # where positions are added, and where a layer begins


class Tower(NamedTuple):
    """Where a tower stands.

    Attributes:
        line: x of its residual stream.
        side: 1 where its sublayers stand to the right of it, -1 where to the left.
        reach: how far from the line they stand.
    """

    line: Real
    side: int
    reach: Real

    def beside(self, top: Real, size: tuple[Real, Real]) -> Box:
        """Where a box of this size stands beside the line."""
        wide, high = size
        x = self.line + (self.reach if self.side > 0 else -self.reach - wide)
        return Box(x, top, wide, high)


class Part(NamedTuple):
    """A piece while it is painted: of a chapter, and lit or not."""

    chapter: int
    is_lit: bool

    def look(self, look: str) -> str:
        return look if self.is_lit else "x"


def shapes() -> dict[str, tuple[int, ...]]:
    """The shapes of what the trained transformer of chapter 13 computes for one date."""
    model = load("transformer").requires_grad_(False).transformer
    letters = LETTERS.encode_batch([list(DATE)])
    signs = SIGNS.encode_batch([["<start>", *ISO]])
    output = model(letters, signs)
    tensors = {
        "letters": model.source_embedding(letters)[0],
        "signs": model.target_embedding(signs)[0],
        "encoder": output.encoder_weights[0][0],
        "decoder": output.self_weights[0][0],
        "cross": output.cross_weights[0][0],
        "memory": model.encode(letters)[0][0],
        "logits": output.logits[0],
        "hidden": model.encoder.layers[0].feed_forward.w_1.weight,
    }
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def two_towers(lit: int | None = None) -> Drawing:
    """Draw a transformer: the encoder reads, the decoder writes, three attentions connect them.

    Each piece is a link to its chapter.

    Args:
        lit: the chapter, 8 to 13, whose pieces are lit: those before it are plain, those after it
            faint. None and 13 for the whole.

    Example:
        >>> from attention.drawings import two_towers
        >>> two_towers(11)
        Drawing of no numbers
    """
    size = shapes()
    lit = None if lit == 13 else lit

    def paint(canvas: Canvas) -> Real:
        out, reach = (116, 34) if canvas.narrow else (210, 64)
        middle = canvas.width / 2
        encoder, decoder = Tower(middle - out, 1, reach), Tower(middle + out, -1, reach)
        paint_encoder(canvas, size, lit, encoder)
        paint_decoder(canvas, size, lit, decoder)
        paint_cross(canvas, size, lit, encoder, decoder)
        return HEIGHT

    return Drawing(paint, told(size, lit), {})


def told(size: dict[str, tuple[int, ...]], lit: int | None) -> str:
    """The towers in words, in the order of the arrows."""
    by = {name: " × ".join(map(str, shape)) for name, shape in size.items()}
    where = "" if lit is None else f" Lit: what chapter {lit} builds."
    return (
        f"A transformer as two towers. The encoder reads: letters, {by['letters']}, and their "
        "positions go up a line, the residual stream. In each layer self-attention reads the line "
        f"as queries, keys and values; its weights are {by['encoder']}, and what it finds is added "
        "to the line. Then the feed-forward layer reads the line and adds to it. On top is the "
        f"memory, {by['memory']}. The decoder writes: signs, {by['signs']}, and their positions go "
        f"up another line. In each layer causal self-attention, {by['decoder']}, reads and adds; "
        f"then cross-attention, {by['cross']}, with queries from the signs, keys and values from "
        "the memory; then the feed-forward layer. On top are the logits, "
        f"{by['logits']}, and the loss.{where}"
    )


@contextmanager
def piece(canvas: Canvas, lit: int | None, chapter: int) -> Iterator[Part]:
    """What is painted within leads to its chapter, and is faint while that is still to come."""
    faint = "faint" if lit is not None and chapter > lit else ""
    with canvas.group(faint), canvas.link(f"#chapter-{chapter}"):
        yield Part(chapter, lit in (None, chapter))


def name(canvas: Canvas, part: Part, x: Real, y: Real, words: str, look: str = "x") -> None:
    canvas.text(x, y, words, f"{look} of bold" if part.is_lit else "", size=12)
    canvas.text(x, y + 13, f"chapter {part.chapter}", "quiet link", size=11)


def tensor(
    canvas: Canvas, part: Part, x: Real, foot: Real, shape: tuple[int, int], look: str = "x"
) -> Box:
    """Paint a tensor with its foot there, its middle at x."""
    rows, columns = shape
    corner = x - columns * UNIT / 2, foot - rows * UNIT
    return canvas.tensor(*corner, shape, part.look(look), unit=UNIT)


def paint_encoder(canvas: Canvas, size: dict, lit: int | None, tower: Tower) -> None:
    enter(canvas, lit, tower, "letters", size["letters"])
    heading(canvas, tower, "encoder", "reads, once")
    layers(canvas, lit, tower, top=232)
    self_attention(canvas, lit, tower, 346, size["encoder"], ("letters", "letters"), 7)
    feed_forward(canvas, lit, tower, 256, size["hidden"])


def paint_decoder(canvas: Canvas, size: dict, lit: int | None, tower: Tower) -> None:
    enter(canvas, lit, tower, "signs", size["signs"])
    heading(canvas, tower, "decoder", "writes, sign by sign")
    layers(canvas, lit, tower, top=138)
    self_attention(canvas, lit, tower, 346, size["decoder"], ("signs", "signs"), 5, "causal")
    feed_forward(canvas, lit, tower, 162, size["hidden"])
    with piece(canvas, lit, 8) as part:
        canvas.arrow(tower.line, 128, tower.line, 119, width=1)
        box = tensor(canvas, part, tower.line, 117, size["logits"], "output")
        name(canvas, part, tower.beside(0, FRAME).middle[0], 76, "logits, loss", "output")
        canvas.arrow(tower.line, box.y - 2, tower.line, 81, width=1)
        canvas.text(tower.line, 76, "−log p", f"{part.look('output')} of", size=12)


def heading(canvas: Canvas, tower: Tower, words: str, does: str) -> None:
    middle = (tower.line + tower.beside(0, FRAME).middle[0]) / 2
    canvas.text(middle, 24, words, "bold")
    canvas.text(middle, 40, does, "quiet", size=11)


def enter(
    canvas: Canvas, lit: int | None, tower: Tower, words: str, shape: tuple[int, int]
) -> None:
    """Paint what goes in, and the positions that are added to it."""
    line = tower.line
    with piece(canvas, lit, 1) as part:
        box = tensor(canvas, part, line, GROUND, shape)
        canvas.text(line, GROUND + 15, words, size=12)
        canvas.text(line, GROUND + 29, "chapter 1", "quiet link", size=11)
    canvas.path(f"M{point(line, box.y)}V{POSITIONS + 8}", "edge")
    with piece(canvas, lit, 10) as part:
        frame = tower.beside(POSITIONS - 12, (80, 40))
        canvas.rectangle(*frame, "ground")
        end = line + 9 * tower.side
        start = frame.x if tower.side > 0 else frame.right
        canvas.arrow(start + 2 * tower.side, POSITIONS, end, POSITIONS, part.look("q"), width=1)
        plus(canvas, line, POSITIONS, part.look("q"))
        name(canvas, part, frame.middle[0], POSITIONS + 4, "positions", "q")


def plus(canvas: Canvas, x: Real, y: Real, look: str) -> None:
    """Paint the sign of a sum on a line."""
    canvas.rectangle(x - 7, y - 7, 14, 14, "ground", rx=7)
    canvas.rectangle(x - 7, y - 7, 14, 14, f"{look} stroke", rx=7)
    canvas.path(f"M{point(x - 4, y)}H{x + 4}M{point(x, y - 4)}V{y + 4}", f"{look} stroke")


def layers(canvas: Canvas, lit: int | None, tower: Tower, top: Real) -> None:
    """Paint the frame of a layer, the next one behind it, and the line that runs through."""
    far = tower.reach + FRAME[0] + 3
    left = tower.line - 14 if tower.side > 0 else tower.line - far
    wide = far + 14
    with piece(canvas, lit, 12) as part:
        look = part.look("output")
        for back in (8, 4):
            canvas.rectangle(left, top - back, wide, 20, f"{look} stroke", rx=6)
        # To the left, where the way from the memory leaves room on a phone.
        name(canvas, part, tower.beside(0, FRAME).x + 28, top - 26, "layers", "output")
    canvas.rectangle(left, top, wide, LAYER - top, "ground", rx=6)
    with piece(canvas, lit, 11) as part:
        look = part.look("output")
        canvas.rectangle(left, top, wide, LAYER - top, f"{look} stroke", rx=6)
        stream = f"{look} of bold" if part.is_lit else "quiet"
        x = tower.line + (-19 if tower.side > 0 else 27)
        canvas.upright(x, (top + LAYER) / 2, "residual stream", stream)
    canvas.path(f"M{point(tower.line, POSITIONS - 7)}V{top - 12}", "x stroke", stroke_width=2)


def reads(canvas: Canvas, tower: Tower, frame: Box, looks: list[tuple[str, str]]) -> None:
    """Paint what a sublayer reads from the line, and what it adds to it."""
    line, side = tower.line, tower.side
    near = frame.x if side > 0 else frame.right
    for nth, (letter, look) in enumerate(looks):
        y = frame.middle[1] + 8 + 18 * (nth - (len(looks) - 1) / 2)
        canvas.arrow(line, y, near, y, look, width=1)
        if letter:
            canvas.text((line + near) / 2, y - 3, letter, f"{look} of bold", size=11)
    canvas.arrow(near, frame.y + 4, line + 8 * side, frame.y + 4, "output", width=1)
    plus(canvas, line, frame.y + 4, "output")


def self_attention(
    canvas: Canvas,
    lit: int | None,
    tower: Tower,
    top: Real,
    shape: tuple[int, int, int],
    axes: tuple[str, str],
    chapter: int,
    words: str = "attention",
) -> None:
    frame = tower.beside(top, FRAME)
    with piece(canvas, lit, chapter) as part:
        paint_weights(canvas, part, frame, shape, axes)
        reads(canvas, tower, frame, [("Q", "q"), ("K", "k"), ("V", "v")])
        name(canvas, part, frame.middle[0], frame.bottom + 12, words, "weights")


def paint_weights(
    canvas: Canvas, part: Part, frame: Box, shape: tuple[int, int, int], axes: tuple[str, str]
) -> None:
    copies, rows, columns = shape
    canvas.rectangle(*frame, "ground")
    canvas.rectangle(*frame, f"{part.look('weights')} stroke", rx=4)
    high, wide = rows * UNIT, columns * UNIT
    x, y = frame.middle[0] - wide / 2, frame.middle[1] - high / 2 + 13
    how = {"unit": UNIT, "axes": axes, "copies": copies}
    canvas.tensor(x, y, (rows, columns), part.look("weights"), **how)


def feed_forward(
    canvas: Canvas, lit: int | None, tower: Tower, top: Real, hidden: tuple[int, int]
) -> None:
    frame = tower.beside(top, LOW)
    with piece(canvas, lit, 11) as part:
        canvas.rectangle(*frame, "ground")
        canvas.rectangle(*frame, f"{part.look('output')} stroke", rx=4)
        reads(canvas, tower, frame, [("", part.look("output"))])
        canvas.text(
            frame.middle[0], top + 19, f"{hidden[1]} → {hidden[0]} → {hidden[1]}", "quiet", size=11
        )
        name(canvas, part, frame.middle[0], frame.bottom + 12, "feed-forward", "output")


def paint_cross(
    canvas: Canvas, size: dict, lit: int | None, encoder: Tower, decoder: Tower
) -> None:
    """Paint the memory, and the attention that the signs pay to it."""
    frame = decoder.beside(232, FRAME)
    with piece(canvas, lit, 9) as part:
        box = tensor(canvas, part, encoder.line, 200, size["memory"], "v")
        canvas.arrow(encoder.line, 220, encoder.line, 203, "x", width=1)
        canvas.text(encoder.line, box.y - 8, "memory", "v of bold" if part.is_lit else "", size=12)
        for nth, (letter, look) in enumerate([("V", "v"), ("K", "k")]):
            y, x, end = box.y + 12 + 16 * nth, frame.x - 8 - 8 * nth, frame.y + 22 + 14 * nth
            canvas.path(f"M{point(box.right + 1, y)}H{x}V{end}", f"{look} stroke")
            canvas.arrow(x, end, frame.x, end, look, width=1)
            canvas.text(box.right + 12, y - 3, letter, f"{look} of bold", size=11)
        paint_weights(canvas, part, frame, size["cross"], ("signs", "letters"))
        reads(canvas, decoder, frame, [("Q", "q")])
        name(canvas, part, frame.middle[0], frame.bottom + 12, "cross-attention", "weights")
