"""A page on paper: the text of the page alone, all of it, light, and nothing cut at the edges."""

import re

import pytest

pytestmark = pytest.mark.builds

A4 = 658  # CSS pixels between the margins: 174 mm

# What is drawn outside the text, and what of the text is hidden, or reaches over the right edge.
ON_PAPER = """
() => {
  const drawn = element => element.checkVisibility() && element.getBoundingClientRect().height > 0;
  const text = document.querySelector("article.bd-article");
  const words = element => element.textContent.trim().slice(0, 60);
  const all = [...document.querySelectorAll("body *")];
  const right = Math.ceil(text.getBoundingClientRect().right) + 1;
  return {
    around: all.filter(each => drawn(each) && !each.children.length && words(each)
      && !text.contains(each) && !each.closest(".licences")).map(words),
    folded: [...text.querySelectorAll("details > :not(summary)")]
      .filter(each => !each.parentElement.matches(".static-widget details, .verdict"))
      .filter(each => !drawn(each) && words(each)).map(words),
    cut: [...text.querySelectorAll("p, pre, table, td, th, img, math, dt, svg")]
      .filter(each => drawn(each) && each.getBoundingClientRect().right > right)
      .map(each => `${each.tagName} ${words(each)}`),
    scrolled: [...text.querySelectorAll("pre, .math-scroll")]
      .filter(each => drawn(each) && each.scrollWidth > each.clientWidth + 1).map(words),
    title: drawn(text.querySelector("h1")),
  };
}
"""


@pytest.mark.one_in(6)
def test_only_the_text_is_printed_and_all_of_it(visit, site, page_name):
    with visit(f"{site}/{page_name}", width=A4) as v:
        if not v.page.locator("article.bd-article").count():
            return  # the search page
        v.page.emulate_media(media="print")
        found = v.page.evaluate(ON_PAPER)
        assert found == {"around": [], "folded": [], "cut": [], "scrolled": [], "title": True}


# A browser that is asked to print fetches the lazy pictures first; one that only pretends does not.
FETCHED = """
async () => {
  const pictures = [...document.querySelectorAll(".static-widget-picture img")];
  for (const picture of pictures) picture.loading = "eager";
  await Promise.all(pictures.map(picture => picture.decode()));
  return pictures.map(picture =>
    picture.checkVisibility() !== (picture.closest(".static-widget").dataset.mounted === "true"));
}
"""


@pytest.mark.one_in(6)
def test_an_explorer_is_printed_as_it_stands_or_as_its_picture(visit, site, explorer_page):
    with visit(f"{site}/{explorer_page}", width=A4) as v:
        v.page.emulate_media(media="print")
        pictures = v.page.locator(".static-widget-picture img").count()
        assert pictures and v.page.evaluate(FETCHED) == [True] * pictures
        v.page.emulate_media(media="screen")
        v.mount_all()
        v.page.emulate_media(media="print")
        assert v.page.evaluate(FETCHED) == [True] * pictures
        assert v.page.locator(".static-widget [data-picture]:visible").count()
        assert not v.page.locator(".static-widget :is(input, select, button):visible").count()


def test_who_reads_in_the_dark_prints_on_white(visit, site):
    with visit(f"{site}/05-masking.html", theme="dark") as v:
        theme = "document.documentElement.dataset.theme"
        v.page.evaluate(f'addEventListener("beforeprint", () => {{ window.printed = {theme}; }})')
        assert v.page.evaluate(theme) == "dark"
        assert v.page.pdf().startswith(b"%PDF")
        assert v.page.evaluate("window.printed") == "light"
        assert v.page.evaluate(theme) == "dark"


def test_a_link_to_another_site_is_printed_with_its_address(visit, site):
    def after(page, selector):
        return page.locator(selector).first.evaluate(
            'link => getComputedStyle(link, "::after").content'
        )

    with visit(f"{site}/assignments.html") as v:
        v.page.emulate_media(media="print")
        assert re.search(r"https://", after(v.page, ".bd-article a.external"))
        assert after(v.page, ".bd-article a.internal") == "none"
    with visit(f"{site}/bibliography.html") as v:
        v.page.emulate_media(media="print")
        assert after(v.page, '.bd-article a.external[href*="arxiv.org"]') == "none"
