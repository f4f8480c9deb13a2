"""Every page, light and dark, on a laptop and a phone: complete, in its width, accessible."""

import pytest
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


@pytest.mark.quick
@pytest.mark.parametrize(
    ("theme", "width"),
    [
        # The one that most goes wrong in: the narrow window, and the theme that fewer authors use.
        ("dark", PHONE),
        pytest.param("light", LAPTOP, marks=pytest.mark.slow),
        pytest.param("dark", LAPTOP, marks=pytest.mark.slow),
        pytest.param("light", PHONE, marks=pytest.mark.slow),
    ],
)
def test_page(visit, site, page_name, theme, width):
    with visit(f"{site}/{page_name}", theme=theme, width=width) as v:
        shown = v.page.evaluate("document.documentElement.dataset.theme")
        assert shown == theme, (
            f"the page shows the {shown} theme where the reader's system is {theme}"
        )
        v.mount_all()
        swallowed = v.page.evaluate(SWALLOWED)
        too_wide = v.page.evaluate(TOO_WIDE)
        # Colours differ between the themes, not between the widths, and take most of the time; the
        # theme changes no width.
        colours = (theme, width) in [("light", LAPTOP), ("dark", PHONE)]
        # What passes is not described, and nothing is fetched once more: half of the time.
        options = {
            "rules": {
                "color-contrast": {"enabled": colours},
                # WCAG 2.5.3, which axe leaves out unless asked: a name holds the text that is seen.
                "label-content-name-mismatch": {"enabled": True},
            },
            "resultTypes": ["violations"],
            "preload": False,
        }
        violations = Axe().run(v.page, options=options).response["violations"]
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


def test_links_lead_somewhere(html_folder, page_name, visit, site):
    """Every link to a page of the book leads to a page that exists and to an anchor in it."""
    with visit(f"{site}/{page_name}") as v:
        # A link of a drawing is an element of SVG, whose `href` is no text.
        links = v.page.evaluate(
            """[...document.querySelectorAll("a[href]")].map(
                 a => new URL(a.getAttribute("href"), document.baseURI).href)"""
        )
    dead = set()
    for link in links:
        if link.startswith(site):
            path, _, anchor = link.removeprefix(site + "/").partition("#")
            target = html_folder / (path.partition("?")[0] or "index.html")
            found = target.is_file() and f'id="{anchor}"' in target.read_text("utf-8") + 'id=""'
            if not found:
                dead.add(link)
    assert not dead, "\n".join(sorted(dead))
