"""The end of Part III: seven questions, and the mechanism that each answer leads to."""

from numbers import Real
from typing import NamedTuple

from attention.drawings.drawing import Box, Canvas, Drawing


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
        This book's own: what its measurements of Part III come to.

    Example:
        >>> from attention.drawings import which_one
        >>> which_one()
        Drawing of no numbers
    """

    def paint(canvas: Canvas) -> Real:
        wide = 176 if canvas.narrow else 236
        pitch = 152 if canvas.narrow else 82
        y = 8
        for question in QUESTIONS:
            asked = paint_box(canvas, question.words, 8, y, wide, "x stroke")
            right, below = paint_ways(canvas, asked, y + pitch)
            paint_answer(canvas, question, *right)
            y = below
        paint_answer(canvas, LAST, 8, y)
        return y + (HIGH + 32 if canvas.narrow else HIGH + 12)

    def paint_ways(canvas: Canvas, asked: Box, below: Real) -> tuple[tuple[Real, Real], Real]:
        middle = asked.x + 40
        canvas.arrow(middle, asked.bottom, middle, below)
        canvas.text(middle + 8, below - 8, "no", "bold", anchor="start")
        if canvas.narrow:  # the mechanism stands below its question, to the right of the way down
            x, y = asked.x + 86, asked.bottom + 24
            canvas.arrow(x + 20, asked.bottom, x + 20, y)
            canvas.text(x + 28, y - 8, "yes", "bold", anchor="start")
            return (x, y), below
        x = asked.right + 70
        canvas.arrow(asked.right, asked.middle[1], x, asked.middle[1])
        canvas.text((asked.right + x) / 2, asked.middle[1] - 6, "yes", "bold")
        return (x, asked.y), below

    def paint_answer(canvas: Canvas, question: Question, x: Real, y: Real) -> None:
        wide = 218 if canvas.narrow else 226
        box = paint_box(canvas, question.answer, x, y, wide, "output stroke")
        for nth, chapter in enumerate(question.chapters):
            if canvas.narrow:
                at = x + 4 + 74 * nth, box.bottom + 15
            else:
                at = box.right + 10, box.y + 19 + 19 * nth
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
