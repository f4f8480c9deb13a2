"""The question bank: what stands in `bank/*.toml`, with the stems and reasons of the book.

A file of the bank is a chapter, `01-from-tokens-to-vectors.toml` beside the notebook of the same
name. Each `[[question]]` in it has a `title`, and says where its stem and its reason come from:

    chapter = 2            question 2 at the end of the chapter, and its folded answer
    mistake = "The bias forgotten"
                           the code of that mistake in the guide for instructors, and what its
                           check says to the one who wrote it
    stem = …, reason = …   neither: written for the bank

`before` and `ask` are paragraphs around the stem: what a reader of the chapter has in front of
them, and what is to be chosen. `without` is a piece of the reason that nobody else understands, and
is left out: it leans on the chapter, or it is what a check found on inputs of its own. `says` are
the words of the answer that say which choice is right: the one who changes them is told once, by
`stale_quotes`, and looks at the choices. Then comes one of three ways to answer:

    right = "…"            one of four choices is right
    right = ["…", "…"]     several may be right, all of them and no other are to be chosen
    answer = 0.56          a number, right within `tolerance`; `expression` is what a test computes
                           it from, with `math`, `torch`, `attention` and `reduce`

and `wrong`, a list of pairs: a choice, or a number that comes out of a known mistake, and why it
is wrong. All text is Markdown. A number that the chapter does not print is computed in `numbers`,
`{ "115,200" = "2 * 30**2 * 64" }`.
"""

import random
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from assignments.questions.sources import (
    CHAPTERS,
    Told,
    chapter_questions,
    chapter_title,
    mistakes,
)

BANK = Path(__file__).with_name("bank")
FIELDS = {"title", "chapter", "mistake", "stem", "reason", "before", "ask", "right", "wrong"}
FIELDS |= {"without", "says", "answer", "tolerance", "expression", "numbers"}


@dataclass(frozen=True)
class Choice:
    """One of the choices, in Markdown; `why` is empty where it is right."""

    text: str
    right: bool
    why: str


@dataclass(frozen=True)
class Slip:
    """A number that comes out of a known mistake."""

    number: float
    why: str


@dataclass(frozen=True)
class Question:
    """A question with all its text in Markdown, as every format needs it."""

    name: str  # an identifier in all formats: a letter first, then letters, digits and hyphens
    title: str
    text: str
    reason: str
    several: bool = False  # more than one choice may be right
    choices: tuple[Choice, ...] = ()  # in the order that they are shown
    answer: float | None = None  # of a question without choices
    tolerance: float = 0.0
    slips: tuple[Slip, ...] = ()


@dataclass(frozen=True)
class Chapter:
    """A chapter's questions."""

    name: str
    title: str
    questions: tuple[Question, ...]


def load_bank(folder: Path = BANK) -> list[Chapter]:
    """Read the whole bank, chapter by chapter.

    Raises:
        ValueError: a question that lacks something, or names what the book does not have.
    """
    guide = mistakes()
    chapters = []
    for path in CHAPTERS:
        told = chapter_questions(path), guide[int(path.stem[:2])]
        entries = read_entries(folder, path)
        questions = tuple(make_question(path.stem, entry, *told) for entry in entries)
        chapters.append(Chapter(path.stem, chapter_title(path), questions))
    return chapters


def read_entries(folder: Path, chapter: Path) -> list[dict]:
    return tomllib.loads((folder / f"{chapter.stem}.toml").read_text("utf-8"))["question"]


def make_question(
    chapter: str, entry: dict, asked: dict[int, Told], guide: dict[str, Told]
) -> Question:
    """Join an entry of the bank with what the book says."""
    title = entry.get("title", "")
    where = f"bank/{chapter}.toml, question {title!r}"
    if unknown := sorted(set(entry) - FIELDS):
        raise ValueError(f"{where}: {', '.join(unknown)} is not one of {', '.join(sorted(FIELDS))}")
    told = find(entry, asked, guide, where)
    without = entry.get("without", "")
    paragraphs = entry.get("before"), told.stem, entry.get("ask")
    made = {
        "name": f"q{chapter[:2]}-{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}",
        "title": title,
        "text": "\n\n".join(text.strip() for text in paragraphs if text),
        "reason": told.reason.replace(without, "").strip(),
    }
    if "answer" in entry:
        slips = tuple(Slip(float(number), why) for number, why in entry.get("wrong", []))
        answer, tolerance = float(entry["answer"]), float(entry["tolerance"])
        return Question(**made, answer=answer, tolerance=tolerance, slips=slips)
    right = entry["right"]
    several = isinstance(right, list)
    choices = [Choice(text, True, "") for text in (right if several else [right])]
    choices += [Choice(text, False, why) for text, why in entry["wrong"]]
    # The same order in every run, drawn for each question by itself.
    random.Random(f"attention {made['name']}").shuffle(choices)
    return Question(**made, several=several, choices=tuple(choices))


def stale_quotes(folder: Path = BANK) -> list[str]:
    """What the bank quotes of an answer that the book does not say any more, a line each.

    The bank still loads: it may be right, but the one who changed the answer has to look at it.
    """
    guide, lines = mistakes(), []
    for path in CHAPTERS:
        told = chapter_questions(path), guide[int(path.stem[:2])]
        for entry in read_entries(folder, path):
            number = entry.get("chapter", entry.get("mistake", entry["title"]))
            where = f"bank/{path.stem}.toml, question {number!r}"
            answer = find(entry, *told, where).reason
            if entry.get("without", "") not in answer:
                lines.append(f"{where}: its answer has no {entry['without']!r} to leave out")
            if entry.get("says", "") not in answer:
                lines.append(
                    f"{where}: its answer does not say {entry['says']!r}; is the right choice "
                    f"still right? It says: {answer}"
                )
    return lines


def find(entry: dict, asked: dict[int, Told], guide: dict[str, Told], where: str) -> Told:
    if "chapter" in entry:
        known, wanted, room = asked, entry["chapter"], "the questions of the chapter"
    elif "mistake" in entry:
        known, wanted, room = guide, entry["mistake"], "the mistakes in book/misunderstandings.md"
    else:
        return Told(entry["stem"], entry["reason"])
    if wanted not in known:
        names = ", ".join(map(str, known))
        raise ValueError(f"{where}: {wanted!r} is not among {room}: {names}")
    return known[wanted]
