"""The state of an explorer as a link, and one explorer shown in two places."""

import re

import pytest

SEEN = """
widget => [...widget.querySelectorAll(
  ".status, .own input, .sw-control output, .answers, .switches, svg.sentence")]
  .map(part => part.value ?? part.textContent)
"""


def mounted(v, widget):
    widget.scroll_into_view_if_needed()
    v.page.wait_for_function("w => w.dataset.mounted === 'true'", arg=widget.element_handle())
    return widget


def set_slider(widget, name, place):
    slider = widget.get_by_label(name, exact=True)
    slider.evaluate(
        "(input, place) => { input.value = place;"
        " input.dispatchEvent(new Event('input', {bubbles: true})); }",
        place,
    )


@pytest.mark.quick
def test_a_link_leads_back_to_sliders_sentence_and_switches(visit, site):
    allowed = {"permissions": ["clipboard-read", "clipboard-write"]}
    with visit(f"{site}/index.html", **allowed) as v:
        widget = mounted(v, v.page.locator(".static-widget").first)
        set_slider(widget, "n_heads", 3)
        widget.locator(".own input").fill("the fox saw a bird and the wolf bit the fox")
        widget.get_by_role("button", name="bit", exact=True).click()
        widget.get_by_role("switch").nth(1).click()
        seen = widget.evaluate(SEEN)
        widget.get_by_role("button", name="Copy link to this").click()
        widget.get_by_text("Copied.").wait_for()
        link = v.page.evaluate("navigator.clipboard.readText()")
        # From the page itself, and in a tab that has seen nothing.
        set_slider(widget, "n_heads", 0)
        assert widget.evaluate(SEEN) != seen
        v.page.evaluate("link => { location.hash = ''; location.href = link; }", link)
        v.page.wait_for_function(f"([w, seen]) => String(({SEEN})(w)) === String(seen)",
                                 arg=[widget.element_handle(), seen])  # fmt: skip
    with visit(link) as v:
        widget = mounted(v, v.page.locator(".static-widget").first)
        assert widget.evaluate(SEEN) == seen
        v.assert_no_trouble()


@pytest.mark.quick
def test_another_model_has_its_heads_on(visit, site):
    with visit(f"{site}/index.html") as v:
        widget = mounted(v, v.page.locator(".static-widget").first)
        widget.get_by_role("switch").first.click()
        set_slider(widget, "n_heads", 0)
        [switch] = widget.get_by_role("switch").all()
        assert switch.get_attribute("aria-checked") == "true"
        assert widget.locator("svg.sentence .arc").count()


@pytest.mark.parametrize("page", ["02-projecting-to-q-k-v", "12-two-layers-together"])
def test_a_picture_that_is_shown_again_moves_with_the_first(visit, site, page):
    with visit(f"{site}/{page}.html") as v:
        first = mounted(v, v.page.locator(".static-widget").first)
        root = first.get_attribute("data-widget")
        both = v.page.locator(f'.static-widget[data-widget="{root}"]')
        assert both.count() == 2
        second = mounted(v, both.last)
        assert first.evaluate(SEEN) == second.evaluate(SEEN)
        before = first.evaluate(SEEN)
        slider = second.locator("input[type=range]").first
        slider.focus()
        slider.press("Home")
        second.get_by_role("switch").first.click()
        now = second.evaluate(SEEN)
        first.scroll_into_view_if_needed()  # what nobody sees is drawn when it comes near
        v.page.wait_for_function(f"([w, now]) => String(({SEEN})(w)) === String(now)",
                                 arg=[first.element_handle(), now])  # fmt: skip
        assert now != before
        v.assert_no_trouble()


def test_a_puzzle_stands_by_itself_and_leads_to_its_chapter(visit, site):
    address = f"{site}/05-masking.html?alone#picture-paint-a-mask"
    with visit(address, width=360) as v:
        widget = mounted(v, v.page.locator(".static-widget:visible"))
        assert v.page.locator("h1:visible").inner_text() == "Paint a mask"
        assert v.page.locator(".bd-sidebar-primary:visible, .bd-content:visible").count() == 0
        widget.locator("[data-act='row 2']").click()
        assert "all their weights are 0" in widget.inner_text()
        v.page.get_by_role("link", name="Masking").click()
        v.page.locator(".bd-article p.guess").wait_for()
        v.assert_no_trouble()


def test_the_list_of_pictures_leads_to_each(html_folder):
    text = (html_folder / "pictures.html").read_text("utf-8")
    links = re.findall(r'href="(\d\d-[\w-]+\.html)(?:\?alone)?#(picture-[\w-]+)"', text)
    for page, name in links:
        assert f'id="{name}"' in (html_folder / page).read_text("utf-8")
    there = "".join(path.read_text("utf-8") for path in html_folder.glob("[0-9]*.html"))
    assert len(set(links)) == len(links) == len(re.findall(r' id="picture-', there)) > 25
