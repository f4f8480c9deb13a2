"""The decks that `make slides` writes, in a browser without a network, on 1280 by 720 pixels."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tools.built_pages import read
from tools.slides.__main__ import REVEAL_FILES, write_slides
from tools.slides.deck import make_slides

pytestmark = pytest.mark.builds

BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTERS = sorted(path.stem for path in BOOK.glob("[0-9]*.ipynb"))
STAGE = {"width": 1280, "height": 720}
# Of a text of 30 pixels, and of an explorer as large as on a page. Seen from the last row of a
# room, a letter should be no smaller than a fiftieth of the picture.
SMALLEST_TEXT, SMALLEST_EXPLORER = 0.7, 0.6

EVERY_SLIDE = """
async () => {
  const seen = [];
  for (const [nth, slide] of [...document.querySelectorAll(".slides > section")].entries()) {
    Reveal.slide(nth, 0, 99);
    const shown = slide.querySelector(".shown");
    const explorer = Boolean(slide.querySelector(".static-widget"));
    if (explorer) {
      while (!slide.querySelector("[data-mounted]")) await drawn();
      while (shown.classList.contains("fitting")) await drawn();
    }
    const stage = document.querySelector(".slides").getBoundingClientRect();
    const cut = [...shown.querySelectorAll("*")].filter(element => {
      const place = element.getBoundingClientRect();
      return element.checkVisibility() && place.width
        && (place.right > stage.right + 1 || place.bottom > stage.bottom + 1);
    });
    // Steps of a drawing are a widget too, and not the chapter's explorer.
    const steps = Boolean(slide.querySelector(".static-widget .drawing"));
    seen.push({title: slide.querySelector("h1, h2").innerText.trim(), explorer, steps,
      size: Number(shown.style.getPropertyValue("--size")), fits: fits(slide),
      cut: cut.map(element => element.outerHTML.slice(0, 80)), text: shown.textContent,
      notes: slide.querySelector("aside.notes")?.textContent.length ?? 0});
  }
  return seen;
}
"""


@pytest.fixture(scope="session")
def slides(html_folder, made_once):
    """The folder of the decks."""
    return made_once("slides", lambda folder: write_slides(html_folder, folder))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_deck_shows_its_chapter(visit, slides, chapter):
    with visit((slides / f"{chapter}.html").as_uri(), offline=True, **STAGE) as v:
        v.page.wait_for_function("Reveal.isReady()")
        seen = v.page.evaluate(EVERY_SLIDE)

        assert v.page.evaluate("Reveal.getTotalSlides()") == len(seen)
        titles = [slide["title"] for slide in seen]
        assert 13 <= len(seen) <= 20
        assert "?" in seen[1]["text"] and titles[-1] == "The chapter in five lines"
        assert titles.count("What goes wrong") >= 1
        assert sum(slide["explorer"] and not slide["steps"] for slide in seen) == 1
        assert sum(slide["notes"] > 100 for slide in seen) > len(seen) / 3
        for slide in seen:
            smallest = SMALLEST_EXPLORER if slide["explorer"] else SMALLEST_TEXT
            assert slide["fits"] and not slide["cut"] and slide["size"] >= smallest, slide
        v.assert_no_trouble()


TO_THE_EXPLORER = """
async () => {
  const slides = [...document.querySelectorAll(".slides > section")];
  const slide = slides.find(slide => slide.querySelector(".static-widget:not(:has(.drawn))"));
  Reveal.slide(slides.indexOf(slide));
  while (!slide.querySelector("[data-mounted]")) await drawn();
  while (slide.querySelector(".fitting")) await drawn();
  return slides.indexOf(slide);
}
"""
# The last cell of every matrix that is seen: a place near its lower right corner.
LAST_CELLS = """
() => [...document.querySelectorAll("section.present svg[data-name] .grid")]
  .map(grid => grid.getBoundingClientRect())
  .filter(place => place.width && place.bottom < innerHeight)
  .map(place => [place.right - 4, place.bottom - 4])
"""
OUTLINED = """
([x, y]) => {
  const svg = document.elementFromPoint(x, y).closest("svg[data-name]");
  const lit = svg?.querySelector(".outline[d]")?.getBoundingClientRect();
  return Boolean(lit) && lit.left <= x && x <= lit.right && lit.top <= y && y <= lit.bottom;
}
"""


@pytest.mark.one_in(5)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_its_explorer_moves_and_the_slide_stays(visit, slides, chapter):
    with visit((slides / f"{chapter}.html").as_uri(), offline=True, **STAGE) as v:
        v.page.wait_for_function("Reveal.isReady()")
        nth = v.page.evaluate(TO_THE_EXPLORER)
        explorer = v.page.locator("section.present .static-widget")
        picture = explorer.locator("[data-picture]").first
        before = picture.inner_html()
        slider = explorer.locator("input[type=range]").first
        last = slider.evaluate("slider => slider.value === slider.max")
        slider.press("ArrowLeft" if last else "ArrowRight")
        v.page.wait_for_function(
            "([picture, before]) => picture.innerHTML !== before",
            arg=[picture.element_handle(), before],
        )
        place = "Reveal.getIndices().h"
        assert v.page.evaluate(place) == nth

        v.page.evaluate(TO_THE_EXPLORER)  # a changed picture may have another size
        picture.locator("[data-cursor]").press("ArrowRight")
        v.page.wait_for_timeout(300)
        assert v.page.evaluate("document.activeElement.matches('[data-cursor]')")
        assert v.page.evaluate(place) == nth
        v.page.keyboard.press("PageDown")
        assert v.page.evaluate(place) == nth + 1
        v.page.keyboard.press("ArrowLeft")
        assert v.page.evaluate(place) == nth
        v.assert_no_trouble()


@pytest.mark.one_in(5)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_cell_that_is_pointed_at_is_the_one_that_is_read_out(visit, slides, chapter):
    large = {"width": 1920, "height": 1080}
    with visit((slides / f"{chapter}.html").as_uri(), offline=True, **large) as v:
        v.page.wait_for_function("Reveal.isReady()")
        v.page.evaluate(TO_THE_EXPLORER)
        for place in v.page.evaluate(LAST_CELLS):
            v.page.mouse.move(*place)
            assert v.page.evaluate(OUTLINED, place), place


def test_the_keys_that_the_first_page_names(visit, slides):
    with visit((slides / "index.html").as_uri(), offline=True, **STAGE) as v:
        decks = v.page.locator(".decks a")
        assert decks.count() == len(CHAPTERS)
        decks.nth(3).click()
        v.page.wait_for_function("Reveal.isReady() && location.pathname.includes('/04-')")
        v.page.keyboard.press("ArrowRight")
        assert v.page.locator("section.present h2").inner_text() == "The question"
        theme = "document.documentElement.dataset.theme"
        light = v.page.evaluate(theme)
        v.page.keyboard.press("t")
        assert {light, v.page.evaluate(theme)} == {"light", "dark"}
        ground = "getComputedStyle(document.body).backgroundColor"
        colours = {v.page.evaluate(ground)}
        v.page.keyboard.press("t")
        assert len(colours | {v.page.evaluate(ground)}) == 2
        v.page.keyboard.press("Escape")
        assert v.page.evaluate("Reveal.isOverview()")
        near = v.page.locator(".slides > section:nth-child(3) .shown")
        near.wait_for()
        v.assert_no_trouble()


def test_everything_that_the_decks_load_is_there(slides):
    for name in REVEAL_FILES:
        assert (slides / name).stat().st_size
    for deck in slides.glob("*.html"):
        for element in read(deck).select("[src], [href]"):
            address = element.get("src") or element["href"]
            assert not re.match(r"\w+:", address)
            assert (slides / address.partition("?")[0]).is_file(), address


def page_of(body):
    article = f'<title>A page</title><article class="bd-article">{body}</article>'
    return BeautifulSoup(article, "html.parser")


def test_a_role_decides_what_is_shown_when():
    page = page_of(
        "<section><h1>Title</h1><p>Said first.</p>"
        '<section><h2>Part</h2><p class="slide-begins">Shown <a href="x.html">at once</a>.</p>'
        '<p class="slide-goes-on">With it.</p><p>Said.</p>'
        '<p class="slide-click">At a click.</p></section>'
        "<section><h2>At home</h2><p>Said last.</p></section></section>"
    )
    plan = {name: f"<p>{name}.</p>" for name in ("In the open", "Answer", "In pairs", "Explorer")}
    slides = make_slides(page, plan)
    first, second = (BeautifulSoup(slide, "html.parser").section for slide in slides)
    assert first.h1.text == "Title" and not first.select_one(".shown").text
    assert first.aside.text == "In the open.Said first."
    at_once, clicked = second.select(".shown > div")
    assert second.h2.text == "Part" and at_once.text == "Shown at once.With it."
    assert clicked["class"] == ["fragment"] and clicked.text == "At a click."
    assert second.aside.text == "Answer.In pairs.Said.At homeSaid last." and not second.find("a")


@pytest.mark.parametrize(("lines", "shown"), [(10, True), (11, False)])
def test_code_is_shown_where_it_can_be_read(lines, shown):
    code = "\n".join(f"line {nth}" for nth in range(lines))
    cell = (
        f'<div class="cell slide-begins"><div class="cell_input"><pre>{code}</pre></div>'
        '<div class="cell_output"><pre>42</pre></div></div>'
    )
    *_, slide = make_slides(page_of(f"<h1>Title</h1><p>Lead.</p><h2>Part</h2>{cell}"), {})
    assert "42" in slide and ("line 3" in slide) is shown


def test_of_a_cell_that_hides_its_code_the_output_is_shown():
    cell = (
        '<div class="cell tag_remove-input slide-begins"><div class="cell_output">'
        '<div class="drawn"><svg class="drawing wide"></svg></div></div></div>'
    )
    *_, slide = make_slides(page_of(f"<h1>Title</h1><p>Lead.</p><h2>Part</h2>{cell}"), {})
    assert BeautifulSoup(slide, "html.parser").select_one(".shown > div > .cell_output svg.drawing")


def test_a_chapter_without_slides_is_named():
    with pytest.raises(ValueError, match="no cell of 'A page' has the slide type 'slide'"):
        make_slides(page_of("<h1>Title</h1><p>Lead.</p>"), {})
