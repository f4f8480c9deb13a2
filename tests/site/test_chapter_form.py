"""The form of a chapter: the live picture soon, captions, a finding, and code that is folded."""

import pytest
from bs4 import BeautifulSoup

from tests.site.conftest import BOOK

CHAPTERS = sorted(path.stem for path in BOOK.glob("[0-9]*.ipynb"))
FOLDED = """
() => [...document.querySelectorAll(".bd-article .cell > .cell_input:not(#exercises *)")].map(
  cell => cell.getBoundingClientRect().height < 40
    && !cell.querySelector(".highlight").checkVisibility({visibilityProperty: true}))
"""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("size", [(1280, 800), (360, 740)], ids=str)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_first_live_picture_begins_within_a_screen_and_a_half(visit, site, chapter, size):
    with visit(f"{site}/{chapter}.html", width=size[0], height=size[1]) as v:
        first = v.page.locator(".static-widget").first.bounding_box()["y"]
        asked = v.page.locator("p.guess").first.bounding_box()["y"]
        assert max(first, asked) < 1.5 * size[1]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_question_picture_caption_aims_and_one_finding(html_folder, chapter):
    page = BeautifulSoup((html_folder / f"{chapter}.html").read_text("utf-8"), "html.parser")
    article = page.select_one("article.bd-article")
    question, *_ = article.select("section > section")
    picture = question.select_one(".static-widget")
    assert picture and picture.find_previous(class_="at-a-glance")
    assert "After this chapter you can" in question.select_one(".aims").get_text()
    assert picture in question.select_one(".aims").find_all_previous(class_="static-widget")
    assert picture.find_parent("figure").find("figcaption", recursive=False).get_text().strip()
    [finding] = article.select("#finding")
    assert finding.get_text().strip()


@pytest.mark.quick
def test_the_first_picture_takes_the_room_of_the_contents(visit, site):
    with visit(f"{site}/{CHAPTERS[1]}.html", width=1280, height=800) as v:
        widths = v.page.evaluate(
            "['.static-widget', '.bd-article p'].map(each => "
            "document.querySelector(each).getBoundingClientRect().width)"
        )
        assert widths[0] > 900 and widths[1] < 740
        contents = v.page.locator(".bd-sidebar-secondary nav.page-toc")
        assert contents.is_visible() and contents.bounding_box()["height"] > 200
        v.page.locator(".static-widget").first.evaluate("widget => widget.scrollIntoView()")
        v.page.wait_for_function(
            "document.querySelector('.bd-sidebar-secondary').classList.contains('hide')"
        )
        v.page.evaluate("scrollTo(0, document.body.scrollHeight)")
        v.page.wait_for_function(
            "!document.querySelector('.bd-sidebar-secondary').classList.contains('hide')"
        )


LAST_PICTURE = "#picture-splitting-heads-right-and-wrong"


@pytest.mark.quick
@pytest.mark.parametrize("size", [(1280, 800), (360, 740)], ids=str)
@pytest.mark.parametrize("address", ["", "#the-chapter-in-five-lines", f"{LAST_PICTURE}?n_heads=2"])
def test_a_link_arrives_at_the_place_that_it_names(visit, site, address, size):
    """Far below a window the heights of sections are guesses, until they have been laid out."""
    with visit(f"{site}/{CHAPTERS[2]}.html", width=size[0], height=size[1]) as v:
        context = v.page.context.browser.new_context(viewport=v.page.viewport_size)
        page = context.new_page()  # one that does not ask for the whole to be laid out
        page.goto(f"{site}/{CHAPTERS[2]}.html{address}")
        page.wait_for_timeout(1000)
        if not address:
            page.locator(".at-a-glance a").click()
            page.wait_for_timeout(1500)
        place = LAST_PICTURE if "picture" in address else "#the-chapter-in-five-lines > h2"
        top = page.locator(place).bounding_box()["y"]
        context.close()
    assert 40 < top < size[1] / 2


@pytest.mark.quick
@pytest.mark.parametrize("width", [1280, 360, 320])
def test_the_pages_before_and_after_are_a_press_away_at_the_top(visit, site, width):
    with visit(f"{site}/{CHAPTERS[1]}.html", width=width) as v:
        before, after = v.page.locator("a.turn-page").all()
        for link, way, stem in ((before, "previous", 0), (after, "next", 2)):
            assert link.get_attribute("href") == f"{CHAPTERS[stem]}.html"
            assert link.get_attribute("aria-label").startswith(f"{way}: {stem + 1}. ")
            assert link.is_visible()
        assert v.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.quick
def test_code_is_folded_for_who_reads_and_open_for_who_builds(visit, site):
    with visit(f"{site}/{CHAPTERS[2]}.html") as v:
        switch = v.page.locator("button.code-mode")
        folded = v.page.evaluate(FOLDED)
        assert len(folded) > 10 and all(folded)
        assert v.page.locator("#exercises .cell_input .highlight").first.is_visible()
        first = v.page.locator("button.code-of-cell").first
        first.click()
        assert first.get_attribute("aria-expanded") == "true"
        assert v.page.evaluate(FOLDED).count(False) == 1
        heading = v.page.locator("h2").nth(4)
        heading.evaluate("heading => heading.scrollIntoView()")
        before = heading.bounding_box()["y"]
        switch.evaluate("button => button.click()")  # Playwright's own would scroll the page
        assert not any(v.page.evaluate(FOLDED))
        assert abs(heading.bounding_box()["y"] - before) < 60
        v.page.goto(f"{site}/{CHAPTERS[3]}.html")
        assert not any(v.page.evaluate(FOLDED)) and "Fold" in switch.inner_text()
        switch.click()
        v.page.reload()
        assert all(v.page.evaluate(FOLDED))
        v.assert_no_trouble()


def test_without_javascript_all_code_is_open(visit, site):
    with visit(f"{site}/{CHAPTERS[2]}.html", java_script_enabled=False) as v:
        for cell in v.page.locator(".bd-article .cell > .cell_input").all():
            assert cell.locator(".highlight").is_visible()
