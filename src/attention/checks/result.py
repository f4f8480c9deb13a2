"""The answer of a check: passed or not, and why."""

import html
import re
import textwrap
from dataclasses import dataclass

CODE = re.compile("`([^`]*)`")
UNBROKEN = re.compile(r"`[^`]*`|\([\d, ]+\)|\[[\d, ]+\]")  # code, shapes and indices
HARD_SPACE = "\N{NO-BREAK SPACE}"


def keep_together(piece: re.Match) -> str:
    return piece[0].replace(" ", HARD_SPACE)


class NotYet(AssertionError):
    """A test that failed for a reason given in words; IPython shows these words, no traceback."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


@dataclass(frozen=True, repr=False)
class Result:
    """The answer of a check; as the last line of a cell it shows its text.

    check: the name of the check.
    passed: whether everything compared is right.
    paragraphs: the text after the verdict.
    mistakes: the bank's names of the mistakes that give the learner's result; empty where the bank
        has none.
    """

    check: str
    passed: bool
    paragraphs: tuple[str, ...]
    mistakes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        return f"{self.check}: {'passed' if self.passed else 'not yet'}."

    def __repr__(self) -> str:
        lines = [UNBROKEN.sub(keep_together, line) for line in (self.verdict, *self.paragraphs)]
        # 72 columns fit a cell on the page; a piece of code that is longer has a line to itself.
        text = "\n".join(
            textwrap.fill(line, 72, break_long_words=False, break_on_hyphens=False)
            for line in lines
        )
        return text.replace(HARD_SPACE, " ")

    def require(self) -> None:
        """Raise NotYet with the text where the check has not passed: a test of an assignment."""
        if not self.passed:
            raise NotYet(repr(self))

    def _repr_html_(self) -> str:
        """The same words, without colours, so that they are read in a light and a dark theme."""
        lines = [html.escape(paragraph) for paragraph in self.paragraphs]
        text = "".join("<p>" + CODE.sub(r"<code>\1</code>", line) + "</p>" for line in lines)
        return f"<div><p><strong>{html.escape(self.verdict)}</strong></p>{text}</div>"
