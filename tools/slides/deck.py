"""Turn the built page of a chapter into a deck of slides.

The first slide has the chapter's title. What is on the others is chosen in the notebook, cell by
cell (`book._ext.slide_roles` says how), and a slide's title is the heading that its first cell
stands under. What has no role is for the speaker: it stands in the notes of the slide before it.
What the guide for instructors plans for the chapter begins the notes of the slides that it is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

HEADINGS = ["h1", "h2", "h3", "h4"]
LINES_OF_CODE = 10  # more of them cannot be read from the last row: the slide shows what they print
EXPLORER = ".static-widget:not(:has(.drawn))"  # steps of a drawing are a widget too
# What only a page can use: anchors, the buttons of a guess and its answer, Sphinx's own words for a
# fold.
NOT_SHOWN = ".headerlink, .guess, .guessed, .verdict, summary > .expanded"

# Which paragraphs of the guide are for the title, the question, the explorer and the last slide.
PLANNED = (("In the open",), ("Question", "Answer"), ("Explorer",), ("In pairs", "At home"))

BEGINS, CLICK, GOES_ON = ROLES = ("slide-begins", "slide-click", "slide-goes-on")


class Block(NamedTuple):
    heading: str  # the inner HTML of the heading that it stands under
    element: Tag
    role: str  # BEGINS, CLICK or GOES_ON; "" for what is said


def make_slides(page: BeautifulSoup, plan: dict[str, str]) -> list[str]:
    """The slides of a page, each one the inner HTML of reveal.js's `.slides`.

    Args:
        page: of a chapter, as it is built.
        plan: paragraphs of the guide for instructors, by the bold words that they begin with.

    Raises:
        ValueError: the page puts nothing on a slide.
    """
    article = page.select_one("article.bd-article")
    for element in article.select(NOT_SHOWN):
        element.decompose()
    for link in article.select("a[href]"):
        link.unwrap()  # nobody follows one from a wall
    slides: list[list[Block]] = []
    for block in blocks(article, ""):
        if block.role == BEGINS or not slides:
            slides.append([])
        slides[-1].append(block)
    if len(slides) == 1:
        raise ValueError(f"no cell of {page.title.get_text()!r} has the slide type 'slide'")
    of_title, of_question, of_explorer, of_last = (
        "".join(plan.get(name, "") for name in names) for names in PLANNED
    )
    lead, *others = slides
    title = f'<h1>{lead[0].heading}</h1><div class="shown"></div>'
    before = notes([of_title, *map(said, lead)])
    made = [f'<section class="first">{title}{before}</section>\n']
    for nth, each in enumerate(others):
        explorer = any(block.element.select(EXPLORER) for block in each)
        planned = (of_question if nth == 0 else "") + (of_explorer if explorer else "")
        made.append(slide(planned + (of_last if each is others[-1] else ""), *each))
    return made


def blocks(parent: Tag, heading: str) -> Iterator[Block]:
    """Everything that stands under a heading, in the order of the page."""
    for element in parent.find_all(recursive=False):
        if element.name == "section":
            yield from blocks(element, heading)
        elif element.name in HEADINGS:
            heading = element.decode_contents()
        else:
            inside = [element, *element.find_all(class_=ROLES)]  # of a fold, what is in it
            found = (name for each in inside for name in each.get("class", []) if name in ROLES)
            yield Block(heading, element, next(found, ""))


def slide(planned: str, *contents: Block) -> str:
    heading = contents[0].heading
    shown, spoken = [], [planned]
    for block in contents:
        if block.role == GOES_ON:
            shown[-1] += on_slide(block.element)
        elif block.role:
            shown.append(on_slide(block.element))
        else:
            if block.heading != heading:  # of a section that has no slide
                spoken.append(f"<h3>{block.heading}</h3>")
            spoken.append(said(block))
        heading = block.heading
    clicked = ["", *(' class="fragment"' for _ in shown[1:])]
    parts = (f"<div{when}>{part}</div>" for when, part in zip(clicked, shown, strict=True))
    title = f"<h2>{contents[0].heading}</h2>"
    return f'<section>{title}<div class="shown">{"".join(parts)}</div>{notes(spoken)}</section>\n'


def said(block: Block) -> str:
    return "" if is_cell(block.element) else str(block.element)


def notes(parts: Iterable[str]) -> str:
    text = "".join(parts)
    return f'<aside class="notes">{text}</aside>' if text else ""


def on_slide(element: Tag) -> str:
    if not is_cell(element):
        return str(element)
    parts = list(element.select(".cell_output"))
    code = element.select_one(".cell_input")  # None where the cell hides it
    drawn = element.select_one("img, .static-widget, .drawn")  # that is what the slide is for
    short = code and len(code.get_text().strip().splitlines()) <= LINES_OF_CODE
    if short and not drawn and not code.find_parent("details"):
        parts.insert(0, code)
    return "".join(map(str, parts))


def is_cell(element: Tag) -> bool:
    return "cell" in element.get("class", [])
