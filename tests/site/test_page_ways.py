"""A page without JavaScript, and when its reader changes the theme."""

import pytest

# Where the page offers a button for its theme it is pressed until the theme is the wanted one.
SHOW_THEME = """
async theme => {
  const button = document.querySelector(".theme-switch-button");
  for (let i = 0; button && i < 3 && document.documentElement.dataset.theme !== theme; i++) {
    button.click();
    await new Promise(resolve => requestAnimationFrame(resolve));
  }
  return document.documentElement.dataset.theme;
}
"""

COLOURS = """
() => {
  const opaque = element => {
    for (let up = element; up; up = up.parentElement) {
      const colour = getComputedStyle(up).backgroundColor;
      if (!/^rgba\\(.*, 0\\)$|^transparent$/.test(colour)) return colour;
    }
  };
  return [...document.querySelectorAll(".static-widget")].map(widget => {
    const picture = widget.querySelector("[data-picture]");
    const cell = [...picture.querySelectorAll("path.cells, rect")].find(
      shape => getComputedStyle(shape).fill !== "none");
    return {
      page: opaque(widget.parentElement),
      behind: opaque(picture),
      text: getComputedStyle(widget.querySelector("[role=status]")).color,
      cell: cell && getComputedStyle(cell).fill,
    };
  });
}
"""


@pytest.mark.one_in(6)
def test_without_javascript_a_static_picture_stands_in(visit, site, page_name):
    with visit(f"{site}/{page_name}", java_script_enabled=False) as v:
        shown = set()
        for widget in v.page.locator(".static-widget").all():
            name = widget.get_attribute("data-widget")
            if name in shown:
                assert "first picture once more" in widget.inner_text()
                continue
            shown.add(name)
            picture = widget.locator("img, svg.drawing:visible")
            assert picture.count() == 1, "an explorer without a static picture"
            picture.scroll_into_view_if_needed()
            assert picture.is_visible()
            size = picture.bounding_box()
            assert size["width"] > 100 and size["height"] > 50, f"the picture is {size}"
            words = picture.get_attribute("alt") or picture.get_attribute("aria-label") or ""
            assert len(words) > 20, "the static picture needs words"
        for picture in v.page.locator("main img").all():
            assert picture.get_attribute("alt"), picture.get_attribute("src")
        v.assert_no_trouble()


@pytest.mark.one_in(4)
def test_explorers_follow_the_theme(visit, site, explorer_page):
    with visit(f"{site}/{explorer_page}", theme="light") as v:
        assert v.mount_all(), "the page shows no explorer"
        before = v.page.evaluate(COLOURS)
        show(v, "dark")
        after = v.page.evaluate(COLOURS)
        for old, new in zip(before, after, strict=True):
            assert old["behind"] == old["page"], "the explorer stands in a box of another colour"
            assert new["behind"] == new["page"], "the explorer stands in a box of another colour"
            assert old["text"] != new["text"] and old["page"] != new["page"]
            assert old["cell"] is None or old["cell"] != new["cell"], "the cells keep their colours"
        show(v, "light")
        assert v.page.evaluate(COLOURS) == before, "the way back leads elsewhere"
        v.assert_no_trouble()


def show(v, theme):
    v.page.emulate_media(color_scheme=theme)
    if v.page.evaluate("document.documentElement.dataset.theme") != theme:
        assert v.page.evaluate(SHOW_THEME, theme) == theme, "the theme cannot be changed"
