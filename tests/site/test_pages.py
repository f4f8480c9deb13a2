"""Every page, light and dark, on a laptop and a phone: complete, in its width, accessible."""

import html
import re
from functools import cache
from urllib.parse import unquote, urlsplit, urlunsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe

LAPTOP, PHONE = 1280, 360

# Elements that reach past the window's right edge, for the message of a failure.
TOO_WIDE = """
() => {
  const width = document.scrollingElement.clientWidth;
  if (document.scrollingElement.scrollWidth <= width) return [];
  const inside = element => {  // a box that scrolls or clips by itself keeps what it holds
    for (let up = element.parentElement; up; up = up.parentElement)
      if (![document.body, document.documentElement].includes(up)
          && getComputedStyle(up).overflowX !== "visible") return true;
    return false;
  };
  const wide = [...document.body.querySelectorAll("*")].filter(
    element => element.getBoundingClientRect().right > width + 0.5 && !inside(element));
  return [`the page is ${document.scrollingElement.scrollWidth} px wide`,
          ...wide.map(element => element.outerHTML.slice(0, 120))];
}
"""

# Words such as <start> that a browser took for elements, and shows nothing of.
SWALLOWED = """
() => [...document.querySelectorAll("article *")].filter(
  element => element instanceof HTMLUnknownElement).map(element => element.localName)
"""

# For axe a page of the reference has thousands of words of code, in a few colours. Its contrast is
# looked at in the first of those that look alike: which have, with all that they stand in, the same
# names, classes and styles.
FIRST_OF_A_LOOK = """;
(() => {
  const styles = ["color", "backgroundColor", "backgroundImage", "opacity", "filter", "position",
    "fontSize", "fontWeight", "textShadow", "display", "visibility"];
  const numbers = new Map();
  const mark = (element, above) => {
    const style = getComputedStyle(element);
    const values = styles.map(name => style[name]);
    const look = [above, element.localName, element.getAttribute("class"), ...values].join();
    if (!numbers.has(look)) numbers.set(look, numbers.size);
    else if (element.closest("pre, dt.sig")) element.dataset.again = "";
    for (const child of element.children) mark(child, numbers.get(look));
  };
  mark(document.documentElement, "");
  axe.configure({rules: [{id: "color-contrast", selector: ":not([data-again])"}]});
})()"""


@pytest.mark.quick
@pytest.mark.parametrize(
    ("theme", "width"),
    [
        # Once each page is seen in one of them, and `make test` sees a few in the first: a narrow
        # window and the theme that fewer authors use go wrong most.
        pytest.param("dark", PHONE, marks=pytest.mark.one_in(2, first=0)),
        pytest.param("light", LAPTOP, marks=[pytest.mark.slow, pytest.mark.one_in(2, first=1)]),
    ],
)
def test_page(visit, site, page_name, theme, width):
    """In both themes and in both widths. A theme changes no width, and a width no colour, so that
    two of the four ways need no more than a look at where the page ends.
    """
    with visit(f"{site}/{page_name}", theme=theme, width=width) as v:
        shown = v.page.evaluate("document.documentElement.dataset.theme")
        assert shown == theme, (
            f"the page shows the {shown} theme where the reader's system is {theme}"
        )
        v.mount_all()
        swallowed = v.page.evaluate(SWALLOWED)
        too_wide = v.page.evaluate(TOO_WIDE)
        # What passes is not described, and nothing is fetched once more: half of the time.
        options = {
            # WCAG 2.5.3, which axe leaves out unless asked: a name holds the text that is seen.
            "rules": {"label-content-name-mismatch": {"enabled": True}},
            "resultTypes": ["violations"],
            "preload": False,
        }
        violations = (
            Axe(AXE_SCRIPT + FIRST_OF_A_LOOK).run(v.page, options=options).response["violations"]
        )
        v.page.set_viewport_size({"width": LAPTOP + PHONE - width, "height": 900})
        too_wide += v.page.evaluate(TOO_WIDE)
        v.assert_no_trouble()
        assert not swallowed, "a word between < and > is code: put it between backticks"
        assert not too_wide, "\n".join(too_wide)
        assert not violations, "\n".join(map(description, violations))


def description(violation):
    places = [
        f"    {' '.join(map(str, node['target']))}: {node['html'][:160]}"
        for node in violation["nodes"]
    ]
    return "\n".join(
        [f"{violation['id']} ({violation['impact']}): {violation['help']}", *places[:8]]
    )


def test_links_lead_somewhere(html_folder, page_name):
    """Every link to a page of the book leads to a page that exists and to an anchor in it."""
    dead = set()
    for link in links_of(html_folder / page_name):
        path, _, anchor = link.partition("#")
        target = html_folder / (path or page_name)
        if not target.is_file() or (anchor and anchor not in ids_of(target)):
            dead.add(link)
    assert not dead, "\n".join(sorted(dead))


def links_of(path):
    """What the links of a page that lead to the book's own files say, those of drawings too."""
    links = re.findall(r"<a\b[^>]*?\bhref=\"([^\"]*)\"", path.read_text("utf-8"))
    for link in map(html.unescape, links):
        at = urlsplit(link)
        if not at.scheme and not at.netloc:
            yield urlunsplit(("", "", unquote(at.path), "", at.fragment))


@cache
def ids_of(path):
    return set(re.findall(r"\bid=\"([^\"]*)\"", path.read_text("utf-8")))
