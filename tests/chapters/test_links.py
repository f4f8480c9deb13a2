"""What a link says is where it leads, and what a reader guesses can be the answer."""

import functools
import re

import nbformat
import pytest
from pybtex.database import parse_file

from tools.refresh import chapters, notebooks

PATHS = notebooks()
BOOK = PATHS[0].parent
PAGES = [*PATHS, *sorted(BOOK.glob("*.md"))]
PAPERS = set(parse_file(BOOK / "references.bib").entries)
FENCED = re.compile(r"^(```|~~~)(?!\{).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]*)\)")
TERM = re.compile(r"\{term\}`([^`<]+?)(?:\s*<([^`>]+)>)?`")
# Forms of one word, and what the book calls a term beside its name.
OTHER_WORDS = {"keys": "key", "axes": "axis", "sines and cosines": "positional encoding"}


@functools.cache
def cells(path):
    return [c.source for c in nbformat.read(path, 4).cells if c.cell_type == "markdown"]


def text(path):
    whole = "\n\n".join(cells(path)) if path.suffix == ".ipynb" else path.read_text("utf-8")
    return FENCED.sub("", whole)


def plain(words):
    """Words as they are compared: in one line, in small letters, without the article."""
    return " ".join(words.split()).lower().removeprefix("the ")


TITLES = {
    plain(title[1]): page.name
    for page in PAGES
    if (title := re.search(r"^# (?:\d+\. )?(.+)", text(page), re.MULTILINE))
}
TITLES |= {plain(page.stem): page.name for page in PAGES if page.suffix == ".md"}
TITLES["last chapter"] = chapters()[-1].name


@pytest.fixture(params=PAGES, ids=lambda page: page.stem)
def page(request):
    return request.param


def test_a_link_that_names_a_page_leads_there(page):
    for words, target in LINK.findall(text(page)):
        if number := re.fullmatch(r"(?:[Cc]hapters? )?(\d+)", words):
            assert target.startswith(f"{int(number[1]):02}-"), f"[{words}]({target})"
        if target.endswith((".md", ".ipynb")):
            assert (BOOK / target).exists(), target
            assert TITLES.get(plain(words), target) == target, f"[{words}]({target})"


def test_a_link_to_a_term_is_the_term(page):
    glossary = text(BOOK / "glossary.md").partition("{glossary}")[2]
    terms = {plain(term) for term in re.findall(r"^(\S.*)\n  \S", glossary, re.MULTILINE)}
    for words, target in TERM.findall(text(page)):
        words, target = plain(words), plain(target or words)
        assert target in terms, target
        begun = {word[:4] for word in re.findall(r"\w+", OTHER_WORDS.get(words, words))}
        assert begun & {word[:4] for word in re.findall(r"\w+", target)}, (words, target)


def test_a_citation_is_in_the_bibliography(page):
    for keys in re.findall(r"\{cite:?\w*\}`([^`]+)`", text(page)):
        assert set(re.split(r",\s*", keys)) <= PAPERS, keys


def test_the_landing_page_lists_the_chapters_in_their_order():
    rows = re.findall(r"^\| \[\]\((\d\d-[^)]*)\)", text(PATHS[0]), re.MULTILINE)
    assert rows == [path.name for path in chapters()[1:]]


def test_the_marks_of_the_claims_are_the_verdicts_of_their_table():
    [path] = [path for path in PATHS if path.stem == "20-claims-tested"]
    told = re.findall(r'class="mark" .*?data-answer="(.*?)"', text(path))
    printed = [
        o.text for c in nbformat.read(path, 4).cells for o in c.get("outputs", ()) if "text" in o
    ]
    [table] = [each for each in printed if each.lstrip().startswith("claim")]
    rows = [line for line in table.splitlines() if line[:1].isdigit()]
    stands = [re.search(r"[<>=≥] [\d.]+ +-?[\d.]+(\*?)", row)[1] for row in rows]
    assert told == [
        "true" if star else "with a condition" if row.endswith("*") else "false"
        for row, star in zip(rows, stands, strict=True)
    ]


@pytest.mark.parametrize("chapter", chapters()[1:], ids=lambda path: path.stem)
def test_a_guess_has_a_verdict_and_the_chapter_comes_to_the_same(chapter):
    guesses = [i for i, cell in enumerate(cells(chapter)) if '<p class="guess"' in cell]
    echoes = [i for i, cell in enumerate(cells(chapter)) if '<p class="guessed"' in cell]
    assert guesses and len(guesses) == len(echoes)
    for nth, (asked, measured) in enumerate(zip(guesses, echoes, strict=True)):
        assert asked < measured < [*guesses, len(cells(chapter))][nth + 1]
        tag, fold = cells(chapter)[asked].split(">", 1)
        choices, answer, near = (
            (re.findall(rf'data-{name}="([^"]*)"', tag) or [""])[0]
            for name in ("choices", "answer", "near")
        )
        choices = choices.split("|")
        assert answer in choices and len(set(choices)) == len(choices) > 2
        assert set(filter(None, near.split("|"))) <= set(choices) - {answer}
        verdict = re.search(
            r'<details class="verdict">.*?\*\*(.*?)\.\*\*(.*)</details>', fold, re.S
        )
        assert verdict[1].lower() == answer.lower() and len(verdict[2].split()) > 10
        said = plain(" ".join(cells(chapter)[measured - 1 : measured + 3]))
        for part in re.findall(r"\d[\d.,]*\d|\d", answer) or answer.split(", "):
            assert re.search(rf"(?<![\w.,]){re.escape(part)}(?!\w|[.,]\d)", said, re.IGNORECASE), (
                part
            )
