"""What a page remembers for its reader, and the symbols that light each other."""

import re

import pytest

from book._ext.mathml.convert import to_mathml
from book._ext.symbols import SYMBOLS, coloured
from tests.site.conftest import BOOK

CHAPTERS = sorted(path.stem for path in BOOK.glob("[0-9]*.ipynb"))
PAGE = "03-splitting-heads"


@pytest.mark.one_in(5)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_guess_gets_a_verdict_and_is_repeated_beside_the_answer(visit, site, chapter):
    with visit(f"{site}/{chapter}.html") as v:
        guesses = v.page.locator("p.guess").all()
        echoes = v.page.locator("p.guessed").all()
        assert 1 <= len(guesses) == len(echoes)
        for guess, echo in zip(guesses, echoes, strict=True):
            buttons = guess.get_by_role("button").all()
            verdict = guess.locator("xpath=following-sibling::p[1]")
            fold = guess.locator("xpath=following-sibling::details[1]")
            assert guess.get_by_role("group", name="Your guess").count() == 1
            assert "nothing yet" in echo.inner_text() and verdict.inner_text() == ""
            echo.get_by_role("button").click()
            assert buttons[0].evaluate("button => button === document.activeElement")
            answer, near = (guess.get_attribute(f"data-{each}") for each in ("answer", "near"))
            said = set()
            for button in buttons:
                button.click()
                chosen = button.inner_text()
                word = (
                    "Right" if chosen == answer else "Near" if chosen in (near or "").split("|")
                    else "Not so"
                )  # fmt: skip
                said.add(word)
                assert word in verdict.inner_text() and word in echo.inner_text()
                assert chosen in echo.inner_text() and "____" not in echo.inner_text()
                pressed = [b for b in buttons if b.get_attribute("aria-pressed") == "true"]
                assert [b.inner_text() for b in pressed] == [chosen]
            assert {"Right", "Not so"} <= said
            # The answer is within a screen of the question, and leads to where it is measured.
            assert fold.evaluate("fold => fold.open")
            below = fold.bounding_box()["y"] - guess.bounding_box()["y"]
            assert below < v.page.viewport_size["height"]
            target = fold.get_by_role("link").last.get_attribute("href")
            assert v.page.locator(target).inner_text() == echo.inner_text()
        again = [echo.inner_text() for echo in echoes]
        v.page.reload()
        assert [echo.inner_text() for echo in v.page.locator("p.guessed").all()] == again
        v.assert_no_trouble()


HIDING = [
    path.stem
    for path in sorted(BOOK.glob("[0-9]*.ipynb"))
    if "data-hides" in path.read_text("utf-8")
]


@pytest.mark.quick
@pytest.mark.parametrize("chapter", HIDING)
def test_a_score_waits_for_a_guess_or_a_move(visit, site, chapter):
    assert len(HIDING) == 4
    guess = "document.querySelector('p.guess button').click()"
    move = "document.querySelector('.static-widget input, .static-widget select')"
    for shows in (guess, f"{move}.dispatchEvent(new Event('input', {{bubbles: true}}))"):
        with visit(f"{site}/{chapter}.html") as v:
            v.page.locator(".static-widget").first.evaluate("widget => widget.scrollIntoView()")
            picture = v.page.locator(".static-widget").first
            picture.locator("[data-picture] > *").first.wait_for()
            scores = picture.locator(".status, .score .panels")
            assert scores.count() and not any(each.is_visible() for each in scores.all())
            v.page.evaluate(shows)
            assert all(each.is_visible() for each in scores.all())
            v.assert_no_trouble()


@pytest.mark.quick
def test_claims_are_marked_before_any_of_them_is_judged(visit, site):
    with visit(f"{site}/20-claims-tested.html") as v:
        marks = v.page.locator(".mark").all()
        assert len(marks) == 8
        for mark in marks:
            assert not any(each.inner_text() for each in v.page.locator(".judged").all())
            mark.get_by_role("button", name="false").click()
        said = [mark.locator(".judged").inner_text() for mark in marks]
        assert [nth for nth, each in enumerate(said) if "✓" in each] == [6]
        assert said[0] == said[7] == "✗ with a condition"
        assert "1 of 8" in v.page.locator("ol:has(.mark) + p").inner_text()
        marks[7].get_by_role("button", name="with a condition").click()
        assert "2 of 8" in v.page.locator("ol:has(.mark) + p").inner_text()
        v.assert_no_trouble()


@pytest.mark.quick
def test_no_guess_is_read_in_the_place_of_another(visit, site, html_folder):
    """Of a second one on the page, or of another chapter in the same tab."""
    text = (html_folder / f"{PAGE}.html").read_text("utf-8")
    guess = r'<p class="guess".*?</details>|<p class="guessed">.*?</p>'
    twice = re.sub(guess, r"\g<0>\g<0>", text, flags=re.DOTALL)
    with visit("about:blank") as v:
        v.host = site.split("//")[1]
        v.page.route(f"{site}/{PAGE}.html", lambda route: route.fulfill(body=twice))
        v.page.goto(f"{site}/{PAGE}.html")
        for guess, nth in zip(v.page.locator("p.guess").all(), (0, 2), strict=True):
            guess.get_by_role("button").nth(nth).click()
        v.page.reload()
        pressed = v.page.locator("p.guess [aria-pressed=true]")
        assert pressed.count() == 2 and len(set(pressed.all_inner_texts())) == 2
        names = v.page.locator("p.guess [role=group]").all()
        assert len({each.get_attribute("aria-labelledby") for each in names}) == 2
        v.page.goto(f"{site}/04-scores-scaling-softmax.html")
        assert v.page.locator("p.guess [aria-pressed=true]").count() == 0
        v.assert_no_trouble()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_who_is_in_a_hurry_finds_the_five_lines(html_folder, chapter):
    text = (html_folder / f"{chapter}.html").read_text("utf-8")
    start = text[: text.index('class="guess"')]
    assert 'href="#the-chapter-in-five-lines">the chapter in five lines</a>' in start


@pytest.mark.parametrize("width", [1280, 360])
def test_the_menu_opens_where_the_reader_is(visit, site, width):
    with visit(f"{site}/{CHAPTERS[-1]}.html", width=width, height=500) as v:
        if width == 360:
            v.page.locator(".primary-toggle").first.click()
        here = v.page.locator(".bd-links li.current.active > a")
        v.page.wait_for_function(
            "a => { const {top, bottom} = a.getBoundingClientRect();"
            " return top > 0 && bottom < innerHeight; }",
            arg=here.element_handle(),
            timeout=3000,
        )
        assert v.page.evaluate("scrollY") == 0
        v.assert_no_trouble()


def test_without_javascript_a_guess_is_a_line_to_write_on(visit, site):
    with visit(f"{site}/{PAGE}.html", java_script_enabled=False) as v:
        assert "____" in v.page.locator("p.guess").first.inner_text()
        assert "____" in v.page.locator("p.guessed").first.inner_text()


def test_the_navigation_marks_what_was_read_to_its_end(visit, site):
    with visit(f"{site}/{PAGE}.html") as v:
        marks = v.page.locator(".bd-links .chapter-read")
        assert marks.count() == 0
        v.page.locator("#the-chapter-in-five-lines").scroll_into_view_if_needed()
        marks.first.wait_for(state="attached")
        v.page.goto(f"{site}/index.html")
        [mark] = v.page.locator(".bd-links .chapter-read").all()
        assert mark.get_attribute("aria-label") == "read"
        assert PAGE in mark.locator("xpath=..").get_attribute("href")
        v.assert_no_trouble()


def test_a_browser_that_remembers_nothing_still_shows_the_page(visit, site):
    with visit("about:blank") as v:
        v.host = site.split("//")[1]
        v.page.add_init_script(
            "for (const name of ['localStorage', 'sessionStorage'])"
            " Object.defineProperty(window, name, {get() { throw new Error('no') }});"
        )
        v.page.goto(f"{site}/{PAGE}.html")
        assert v.mount_all()
        v.page.locator("p.guess button").first.click()
        v.page.locator("button.code-mode").click()
        v.page.locator(".own input:visible").first.fill("the zebra saw a cat")
        v.page.wait_for_function(
            "() => [...document.querySelectorAll('[data-picture]')]"
            ".some(picture => picture.textContent.includes('zebra'))"
        )  # the theme's own scripts complain, and the page works all the same


def classes(markup):
    return re.findall(r'<mi class="sym sym-(\w+)">', markup)


def test_symbols_have_their_classes_in_formulas_and_in_code():
    assert classes(to_mathml(r"S_r = Q_r K_r^\top / \sqrt{d_k}", False)) == ["scores", "q", "k"]
    assert classes(to_mathml(r"A V", False)) == ["weights", "v"]
    assert classes(to_mathml(r"X W^Q + b^Q", False)) == [], "those name a matrix and a bias"
    code = '<span class="n">q</span> <span class="n">qq</span> <span class="n">weights</span>'
    assert re.findall(r"sym-(\w+)", coloured(code)) == ["q", "weights"]


def test_pointing_at_a_symbol_lights_it_everywhere(visit, site, html_folder):
    [page] = html_folder.glob("04-*.html")
    with visit(f"{site}/{page.name}") as v:
        v.mount_all()
        for name in ("q", "weights"):
            places = v.page.locator(f".sym-{name}")
            formula, code = (
                v.page.locator(f"{kind}.sym-{name}").first for kind in ("mi", "span.n")
            )
            shade = "element => getComputedStyle(element).backgroundColor"
            before = code.evaluate(shade)
            formula.hover()
            assert code.evaluate(shade) != before
            assert places.count() > 2
        colours = {
            name: v.page.locator(f".sym-{name}").first.evaluate("e => getComputedStyle(e).color")
            for name in SYMBOLS
            if v.page.locator(f".sym-{name}").count()
        }
        assert len(set(colours.values())) == len(colours) >= 4
        assert v.page.locator("figure.panel.sym-weights").count()
        v.assert_no_trouble()
