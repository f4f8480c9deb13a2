"""What a link says is where it leads, and what a reader guesses can be the answer."""

import functools
import re

import nbformat
import pytest
from pybtex.database import parse_file

from tools.refresh import chapters

PATHS = chapters()
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
TITLES["last chapter"] = PATHS[-1].name


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
    assert rows == [path.name for path in PATHS[1:]]


@pytest.mark.parametrize("chapter", PATHS[1:], ids=lambda path: path.stem)
def test_a_guess_with_choices_has_the_answer_among_them(chapter):
    tags = re.findall(r'<p class="(guess|guessed)"(.*?)>', text(chapter))
    assert tags and [name for name, _ in tags] == ["guess", "guessed"] * (len(tags) // 2)
    beside = -1
    for (_, guess), (_, guessed) in zip(tags[::2], tags[1::2], strict=True):
        choices = re.findall(r'data-choices="([^"]*)"', guess)
        answers = re.findall(r'data-answer="([^"]*)"', guessed)
        assert len(choices) == len(answers)
        if not answers:
            continue
        [answer] = answers
        assert answer in choices[0].split("|")
        beside = next(
            i for i, cell in enumerate(cells(chapter)) if i > beside and "data-answer" in cell
        )
        said = plain(" ".join(cells(chapter)[beside - 1 : beside + 3]))
        for part in answer.split(", "):
            assert re.search(rf"(?<![\w.,]){re.escape(part)}(?!\w|[.,]\d)", said, re.IGNORECASE), (
                part
            )
