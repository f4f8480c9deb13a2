"""Maps of the book: pieces that lead to their chapters, with what a chapter builds lit."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import NamedTuple

import torch

from attention.drawings.drawing import Box, Canvas, Drawing, point
from attention.example import running_example
from attention.trained import dates, who_and_whom

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
    answer = who_and_whom.load(d_model, n_heads)(
        example.token_ids[SENTENCE : SENTENCE + 1], torch.tensor(who_and_whom.find_verbs(tokens))
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
        lit: the chapter, 1 to 7, whose pieces are lit: those before it are plain, and those after
            it are faint. None for the whole map.
        mistakes: names of pieces. The step that makes a piece gets a red mark, with the number of
            the name in this list.

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
        middles = []
        for panel in canvas.panels(len(shown), PITCH, across=6, on_phone=3):
            x, runs_back = panel.middle[0], panel.y / PITCH % 2
            middles.append((canvas.width - x if runs_back else x, panel.y + ABOVE))
        places = zip(shown, middles, strict=True)
        boxes = [paint_piece(canvas, piece, *middle, lit) for piece, middle in places]
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
            # All of it can be pointed at, including what lies between its words.
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
    # The name of the rows' axis is to the left of the box.
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


DATE, ISO = "sunday, march the 4th 1973", "1973-03-04"  # of chapter 13
SMALL = 1.6  # of a cell: the letters of the date are 26 by 48
HEIGHT, GROUND = 592, 552  # the foot of what goes in
FRAME, LOW = (80, 80), (80, 30)  # of an attention, of a feed-forward layer
POSITIONS, LAYER = 482, 460  # where positions are added, and where a layer begins


class Tower(NamedTuple):
    """Where a tower stands.

    Attributes:
        line: x of its residual stream.
        side: 1 where its sublayers are to the right of it, -1 where they are to the left.
        reach: how far from the line they are.
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
    model = dates.load("transformer").requires_grad_(False).transformer
    letters = dates.LETTERS.encode_batch([list(DATE)])
    signs = dates.SIGNS.encode_batch([["<start>", *ISO]])
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
        lit: the chapter, 8 to 13, whose pieces are lit: those before it are plain, and those after
            it are faint. None and 13 for the whole.

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

    return Drawing(paint, towers_told(size, lit), {})


def towers_told(size: dict[str, tuple[int, ...]], lit: int | None) -> str:
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
def part_of(canvas: Canvas, lit: int | None, chapter: int) -> Iterator[Part]:
    """What is painted inside leads to its chapter, and is faint while that is still to come."""
    faint = "faint" if lit is not None and chapter > lit else ""
    with canvas.group(faint), canvas.link(f"#chapter-{chapter}"):
        yield Part(chapter, lit in (None, chapter))


def name_part(canvas: Canvas, part: Part, x: Real, y: Real, words: str, look: str = "x") -> None:
    canvas.text(x, y, words, f"{look} of bold" if part.is_lit else "", size=12)
    canvas.text(x, y + 13, f"chapter {part.chapter}", "quiet link", size=11)


def paint_part(
    canvas: Canvas, part: Part, x: Real, foot: Real, shape: tuple[int, int], look: str = "x"
) -> Box:
    """Paint a tensor with its middle at x and its foot at `foot`."""
    rows, columns = shape
    corner = x - columns * SMALL / 2, foot - rows * SMALL
    return canvas.tensor(*corner, shape, part.look(look), unit=SMALL)


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
    with part_of(canvas, lit, 8) as part:
        canvas.arrow(tower.line, 128, tower.line, 119, width=1)
        box = paint_part(canvas, part, tower.line, 117, size["logits"], "output")
        name_part(canvas, part, tower.beside(0, FRAME).middle[0], 76, "logits, loss", "output")
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
    with part_of(canvas, lit, 1) as part:
        box = paint_part(canvas, part, line, GROUND, shape)
        canvas.text(line, GROUND + 15, words, size=12)
        canvas.text(line, GROUND + 29, "chapter 1", "quiet link", size=11)
    canvas.path(f"M{point(line, box.y)}V{POSITIONS + 8}", "edge")
    with part_of(canvas, lit, 10) as part:
        frame = tower.beside(POSITIONS - 12, (80, 40))
        canvas.rectangle(*frame, "ground")
        end = line + 9 * tower.side
        start = frame.x if tower.side > 0 else frame.right
        canvas.arrow(start + 2 * tower.side, POSITIONS, end, POSITIONS, part.look("q"), width=1)
        plus(canvas, line, POSITIONS, part.look("q"))
        name_part(canvas, part, frame.middle[0], POSITIONS + 4, "positions", "q")


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
    with part_of(canvas, lit, 12) as part:
        look = part.look("output")
        for back in (8, 4):
            canvas.rectangle(left, top - back, wide, 20, f"{look} stroke", rx=6)
        # To the left, where the way from the memory leaves room on a phone.
        name_part(canvas, part, tower.beside(0, FRAME).x + 28, top - 26, "layers", "output")
    canvas.rectangle(left, top, wide, LAYER - top, "ground", rx=6)
    with part_of(canvas, lit, 11) as part:
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
    with part_of(canvas, lit, chapter) as part:
        paint_weights(canvas, part, frame, shape, axes)
        reads(canvas, tower, frame, [("Q", "q"), ("K", "k"), ("V", "v")])
        name_part(canvas, part, frame.middle[0], frame.bottom + 12, words, "weights")


def paint_weights(
    canvas: Canvas, part: Part, frame: Box, shape: tuple[int, int, int], axes: tuple[str, str]
) -> None:
    copies, rows, columns = shape
    canvas.rectangle(*frame, "ground")
    canvas.rectangle(*frame, f"{part.look('weights')} stroke", rx=4)
    high, wide = rows * SMALL, columns * SMALL
    x, y = frame.middle[0] - wide / 2, frame.middle[1] - high / 2 + 13
    how = {"unit": SMALL, "axes": axes, "copies": copies}
    canvas.tensor(x, y, (rows, columns), part.look("weights"), **how)


def feed_forward(
    canvas: Canvas, lit: int | None, tower: Tower, top: Real, hidden: tuple[int, int]
) -> None:
    frame = tower.beside(top, LOW)
    with part_of(canvas, lit, 11) as part:
        canvas.rectangle(*frame, "ground")
        canvas.rectangle(*frame, f"{part.look('output')} stroke", rx=4)
        reads(canvas, tower, frame, [("", part.look("output"))])
        sizes = f"{hidden[1]} → {hidden[0]} → {hidden[1]}"
        canvas.text(frame.middle[0], top + 19, sizes, "quiet", size=11)
        name_part(canvas, part, frame.middle[0], frame.bottom + 12, "feed-forward", "output")


def paint_cross(
    canvas: Canvas, size: dict, lit: int | None, encoder: Tower, decoder: Tower
) -> None:
    """Paint the memory, and the attention that the signs pay to it."""
    frame = decoder.beside(232, FRAME)
    with part_of(canvas, lit, 9) as part:
        box = paint_part(canvas, part, encoder.line, 200, size["memory"], "v")
        canvas.arrow(encoder.line, 220, encoder.line, 203, "x", width=1)
        canvas.text(encoder.line, box.y - 8, "memory", "v of bold" if part.is_lit else "", size=12)
        for nth, (letter, look) in enumerate([("V", "v"), ("K", "k")]):
            y, x, end = box.y + 12 + 16 * nth, frame.x - 8 - 8 * nth, frame.y + 22 + 14 * nth
            canvas.path(f"M{point(box.right + 1, y)}H{x}V{end}", f"{look} stroke")
            canvas.arrow(x, end, frame.x, end, look, width=1)
            canvas.text(box.right + 12, y - 3, letter, f"{look} of bold", size=11)
        paint_weights(canvas, part, frame, size["cross"], ("signs", "letters"))
        reads(canvas, decoder, frame, [("Q", "q")])
        name_part(canvas, part, frame.middle[0], frame.bottom + 12, "cross-attention", "weights")


class Question(NamedTuple):
    """One of the questions, and where a yes leads.

    Attributes:
        words: its lines.
        answer: the lines of the mechanism.
        chapters: those that explain it.
    """

    words: tuple[str, ...]
    answer: tuple[str, ...]
    chapters: tuple[int, ...]


QUESTIONS = (
    Question(
        ("Must the model stay", "as it was trained?"),
        ("prefixes, few bits, guesses;", "or a window with sinks"),
        (14, 17),
    ),
    Question(
        ("Can it be trained on,", "but not from the start?"),
        ("new positions, few KV heads", "from a mean, an indexer"),
        (10, 15, 19),
    ),
    Question(
        ("Does the text", "never end?"),
        ("a window, the delta rule,", "or both in turn"),
        (17, 18),
    ),
    Question(
        ("Is it only read,", "and nothing written?"),
        ("all pairs in tiles; far above", "6 · d_model try a window"),
        (16, 17),
    ),
    Question(
        ("Do all texts fit, and are", "prompt and step in time?"),
        ("all pairs, few KV heads,", "pages, prefixes, 8 bits"),
        (14, 15),
    ),
    Question(
        ("Is a look-up in a few", "of the layers enough?"),
        ("windows or states, softmax", "over all in those few"),
        (17, 18),
    ),
    Question(
        ("With a narrow cache,", "is each step in time?"),
        ("latent rows, in pages,", "in few bits"),
        (14, 15),
    ),
)
LAST = Question((), ("one entry for several tokens,", "or a learned choice of keys"), (19,))
HIGH = 46  # of a box


def which_one() -> Drawing:
    """Draw the questions one below the other, and beside each what a yes leads to.

    Every mechanism has links to its chapters.

    Source:
        This book's own: what its measurements of Part III amount to.

    Example:
        >>> from attention.drawings import which_one
        >>> which_one()
        Drawing of no numbers
    """

    def paint(canvas: Canvas) -> Real:
        wide, pitch, foot = (176, 152, 32) if canvas.narrow else (236, 82, 12)
        y = 8
        for question in QUESTIONS:
            asked = paint_box(canvas, question.words, 8, y, wide, "x stroke")
            canvas.arrow(48, asked.bottom, 48, y + pitch)
            canvas.text(56, y + pitch - 8, "no", "bold", anchor="start")
            if canvas.narrow:  # the mechanism stands below, to the right of the way down
                canvas.arrow(114, asked.bottom, 114, asked.bottom + 24)
                canvas.text(122, asked.bottom + 16, "yes", "bold", anchor="start")
                paint_answer(canvas, question, 94, asked.bottom + 24)
            else:
                middle, x = asked.middle[1], asked.right + 70
                canvas.arrow(asked.right, middle, x, middle)
                canvas.text((asked.right + x) / 2, middle - 6, "yes", "bold")
                paint_answer(canvas, question, x, y)
            y += pitch
        paint_answer(canvas, LAST, 8, y)
        return y + HIGH + foot

    def paint_answer(canvas: Canvas, question: Question, x: Real, y: Real) -> None:
        wide = 218 if canvas.narrow else 226
        box = paint_box(canvas, question.answer, x, y, wide, "output stroke")
        for nth, chapter in enumerate(question.chapters):
            if canvas.narrow:
                at = x + 4 + 74 * nth, box.bottom + 15
            else:
                at = box.right + 10, y + 19 + 19 * nth
            with canvas.link(f"#chapter-{chapter}"):
                canvas.text(*at, f"chapter {chapter}", "link", size=12, anchor="start")

    def paint_box(
        canvas: Canvas, words: tuple[str, ...], x: Real, y: Real, wide: Real, look: str
    ) -> Box:
        box = canvas.rectangle(x, y, wide, HIGH, look, rx=6)
        for nth, line in enumerate(words):
            canvas.text(x + 10, y + 19 + 18 * nth, line, anchor="start")
        return box

    told = " If not: ".join(
        f"{' '.join(question.words)} If so, {where(question)}." for question in QUESTIONS
    )
    return Drawing(paint, f"Which mechanism? {told} If not, {where(LAST)}.", {})


def where(question: Question) -> str:
    """A mechanism and its chapters, in words."""
    chapters = " and ".join(map(str, question.chapters))
    many = "s" if len(question.chapters) > 1 else ""
    return f"{' '.join(question.answer)} (chapter{many} {chapters})"
