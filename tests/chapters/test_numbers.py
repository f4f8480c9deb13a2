"""The numbers that a chapter's prose says are those that its cells show, or have a source.

A number in a sentence must stand in the code or in an output of the same section, rounded as the
sentence rounds it. For one that does not, `numbers/` has a file for each chapter and in it a table
for each section: the numbers, separated by spaces, and their source. The source is one of

    elsewhere                code or an output of another section shows such a number
    chapter 14               another chapter whose code or outputs show them
    = 32 * 4096              what the test computes it from, with `math`, `torch` and `dates`
    jiang2023mistral, …      a paper of the bibliography, and where in it
    explorer: …              what the section's explorer shows, and with which controls
    run: …                   measured in a run that no cell stores
    make train               printed by training from nothing
    given                    chosen by the text itself, as the sizes of a question
    small                    whole numbers below a hundred that no cell of the section shows

The last five, and the place in a paper, are taken at their word. A number that is no longer said
must leave its table. What slips through is a number that turns into another one which a cell of its
section shows or which its table has, while the first is still said: most often a single digit.
"""

import functools
import json
import math
import re
import tomllib
from pathlib import Path

import nbformat
import pytest
import torch
from pybtex.database import parse_file

from attention.trained import dates
from attention.trained.induction.training import SEEDS
from tools.refresh import notebooks

PATHS = notebooks()
SOURCES = Path(__file__).with_name("numbers")
PAPERS = set(parse_file(PATHS[0].parent / "references.bib").entries)
NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)+|\d+|\.\d+)(?!\d)")
OF_A_HUNDRED = re.compile(rf"({NUMBER.pattern})\**(?= of 100| ?%)")
VERDICT = re.compile(r'<details class="verdict">.*?</details>', re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# "Every sixth row" and "one in six".
ONE_IN = ("second two", "third three", "fourth four", "fifth five", "sixth six", "seventh seven")
ONE_IN = {word: n for n, words in enumerate(ONE_IN, 2) for word in words.split()}
IN_WORDS = "|".join(ONE_IN)
IN_WORDS = re.compile(rf"\b(?:every ({IN_WORDS}) row|one in ({IN_WORDS}))\b", re.IGNORECASE)
# What is a number and says nothing: other tests hold links, citations and what is counted through.
NO_NUMBERS = re.compile(
    r"""\[(?:[Cc]hapters?\ )?\d+\]\([^)]*\)|\]\([^)]*\)|\{cite[^`]*`[^`]*`|<[^>]*>|\b[Oo]f\ 100\b"""
    r"""|^\#\ \d+\.|^\d+\.\ |^\*\*\d+\.\*\*|Hint\ \d+""",
    re.VERBOSE | re.MULTILINE,
)


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@functools.cache
def sections(path):
    """The cells of a chapter by the heading that they stand under. The verdict on a guess counts to
    where the chapter comes to its answer.
    """
    found, verdicts = {}, []
    for cell in nbformat.read(path, as_version=4).cells:
        heading = re.search(r"^##? (.+)", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and heading:
            name = heading[1]
        verdicts += VERDICT.findall(cell.source)
        cell.source = VERDICT.sub("", cell.source)
        if '<p class="guessed"' in cell.source:
            cell.source += "\n\n" + verdicts.pop(0)
        if cell.id != "setup":
            found.setdefault(name, []).append(cell)
    return found


def numbers(text):
    return NUMBER.findall(text.replace("{,}", ",").replace("_", ""))


def said(cells):
    """The numbers of the prose, and those among them that are shares of a hundred."""
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = FENCED.sub("", text)
    return set(numbers(NO_NUMBERS.sub("", text))), set(OF_A_HUNDRED.findall(text))


def shown(cells):
    """The numbers of code, printed text, and pictures."""
    texts = []
    for cell in cells:
        if cell.cell_type == "markdown":
            texts += FENCED.findall(cell.source)
            continue
        texts.append(cell.source)
        for output in cell.outputs:
            texts += [output.get("text", ""), output.get("evalue", "")]
            texts.append(output.get("data", {}).get("text/plain", ""))
            texts.append(json.dumps(output.get("metadata", {}).get("image/png", {})))
    return set(numbers("\n".join(texts)))


def code(path):
    cells = [cell for cells in sections(path).values() for cell in cells]
    return [cell for cell in cells if cell.cell_type == "code"]


def value(number):
    return float(number.replace(",", "")) if number.count(".") < 2 else math.nan


def places(number):
    return len(number.partition(".")[2])


def stands_in(number, those):
    """Whether a number is among those, or has a point and is one of them rounded."""
    off = 0.5 * 10 ** -places(number) if "." in number else 0
    return number in those or any(
        places(other) >= places(number) and abs(value(other) - value(number)) <= off + 1e-12
        for other in those
    )


def share(number):
    """A number of a hundred as a share: 98.6 as 0.986."""
    return f"{value(number) / 100:.{places(number) + 2}f}"


def unshown(cells):
    those = shown(cells)
    all_numbers, of_a_hundred = said(cells)
    return {
        number
        for number in all_numbers
        if not stands_in(number, those)
        and not (number in of_a_hundred and stands_in(share(number), those))
    }


def sources(chapter):
    """What is said of a chapter's numbers: for each section, each number's source."""
    listed = tomllib.loads((SOURCES / f"{chapter}.toml").read_text("utf-8"))
    return {
        section: {number: source for key, source in entries.items() for number in key.split()}
        for section, entries in listed.items()
    }


def test_every_number_is_shown_or_has_a_source(path):
    listed = sources(path.stem)
    found = {section: unshown(cells) for section, cells in sections(path).items()}
    for section in found | listed:
        new = found.get(section, set()) - set(listed.get(section, ()))
        assert not new, f"{section}: no cell there shows {new}; is it right? numbers/ names sources"
        gone = set(listed.get(section, ())) - found.get(section, set())
        assert not gone, f"{section}: {gone} is not said, or a cell shows it: take it out"


def test_a_number_is_what_its_source_says(path):
    those = shown(code(path))
    for section, entries in sources(path.stem).items():
        for number, source in entries.items():
            where = f"{section}: {number} from {source!r}"
            kind, _, rest = source.partition(" ")
            if source == "elsewhere":
                assert stands_in(number, those) or stands_in(share(number), those), where
            elif kind == "chapter":
                [other] = [each for each in PATHS if each.stem.startswith(rest)]
                assert stands_in(number, shown(code(other))), where
            elif kind == "=":
                computed = float(eval(rest, {"math": math, "torch": torch, "dates": dates}))
                off = abs(computed - value(number))
                assert off <= 0.5 * 10 ** -places(number) + 1e-9, f"{where}: {computed}"
            elif kind == "small":
                assert re.fullmatch(r"\d\d?", number), where
            else:
                assert (
                    kind in ("explorer:", "run:", "given")
                    or source == "make train"
                    or (kind.rstrip(",") in PAPERS)
                ), where


def test_a_share_of_rows_in_words_is_a_percentage_that_is_shown(path):
    for section, cells in sections(path).items():
        prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        printed = [o.get("text", "") for c in cells for o in c.get("outputs", [])]
        shares = [int(share) for share in re.findall(r"(\d+)%", "\n".join(printed))]
        for words in IN_WORDS.finditer(prose):
            n = ONE_IN[(words[1] or words[2]).lower()]
            assert n in [round(100 / share) for share in shares if share], f"{section}: {words[0]}"


def test_the_seeds_that_are_called_stored_are_stored():
    [path] = [path for path in PATHS if path.stem.startswith("12-")]
    prose = "\n".join(cell.source for cells in sections(path).values() for cell in cells)
    both = re.findall(r"stored models, seed (\d) for one layer and seed (\d) for two", prose)
    assert [tuple(map(int, pair)) for pair in both] == [(SEEDS[1], SEEDS[2])]
    assert re.findall(r"Seed (\d) is the stored one", prose) == [str(SEEDS[2])]


def test_what_is_counted_through_leaves_nothing_out(path):
    for section, cells in sections(path).items():
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        text = FENCED.sub("", text)
        for counted in (r"^(\d+)\. ", r"<summary>Hint (\d+)</summary>"):
            last = 0
            for number in map(int, re.findall(counted, text, re.MULTILINE)):
                assert number in (1, last + 1), f"{section}: {number} after {last}"
                last = number
