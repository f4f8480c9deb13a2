"""Every page as Markdown beside it: nothing is lost, and the button that copies it."""

import re
from collections import Counter
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from tools.built_pages import read

BOOK = Path(__file__).parents[2] / "book"
PAGES = sorted(path.stem for path in BOOK.iterdir() if path.suffix in (".ipynb", ".md"))
ADDRESS = "https://someone.github.io/fork/"  # of conftest's fork
READER = MarkdownIt("commonmark", {"html": True}).enable("table")
READER.use(dollarmath_plugin).use(deflist_plugin)

# What a page says, and what its Markdown says when a Markdown reader has made a page of it.
SAID = """
() => {
  const all = selector => [...document.querySelectorAll(selector.replace(/^|, /g, "$&article "))];
  const remove = selector => all(selector).forEach(element => element.remove());
  const words = element => element.textContent.trim().split(/\\s+/).filter(Boolean);
  // Of the page alone: its menu, names for screen readers, buttons, numbers of figures, keys.
  remove("[aria-label='On this page'], .headerlink, script, .visually-hidden");
  remove("summary .collapsed, summary .expanded, .caption-number, .citation .label");
  const equations = all("math, .math").length;
  remove("math, .math");
  const signatures = all(".sig, h2:has(> code:only-child), h3:has(> code:only-child),"
    + " h4:has(> code:only-child)").length;
  remove(".sig");
  const headings = all("h1, h2, h3").map(heading => words(heading).join(" "));
  const code = all("pre").map(block => block.textContent.trimEnd());
  const pictures = all("img").map(picture => picture.alt);
  const links = all("a[href]").map(
    link => new URL(link.getAttribute("href"), document.baseURI).href);
  // A drawing is told in the words that a screen reader says.
  all(".drawn").forEach(drawn => drawn.replaceWith(drawn.firstChild.ariaLabel + " "));
  remove("pre, h1, h2, h3, h4");
  // Words that stand in different blocks are two.
  all("p, li, dt, dd, td, th, summary").forEach(block => block.append(" "));
  return {equations, signatures, headings, code, pictures, links, words: words(
    document.querySelector("article"))};
}
"""


def rendered(text):
    return f"<article>{READER.render(text)}</article>"


def addresses(text):
    """Where the links and the pictures of a Markdown text lead."""
    for block in READER.parse(text):
        for token in block.children or ():
            if address := token.attrs.get("href", token.attrs.get("src")):
                yield address


def markdown_of(folder, name):
    return (folder / f"{name}.md").read_text("utf-8")


@pytest.mark.one_in(6)
@pytest.mark.slow  # two visits of every page
@pytest.mark.parametrize("name", PAGES)
def test_it_says_what_the_page_says(visit, site, html_folder, name):
    with visit(f"{site}/{name}.html", java_script_enabled=False) as v:
        page = v.page.evaluate(SAID)
        v.page.route(
            "**/as-markdown",
            lambda route: route.fulfill(
                body=rendered(markdown_of(html_folder, name)),
                content_type="text/html; charset=utf-8",
            ),
        )
        v.page.goto(f"{site}/as-markdown")
        markdown = v.page.evaluate(SAID)
    for same in ("equations", "signatures", "code", "pictures"):
        assert markdown[same] == page[same], same
    assert [heading for heading in page["headings"] if heading not in markdown["headings"]] == []
    assert set(page["links"]) <= set(markdown["links"])
    assert Counter(page["words"]) - Counter(markdown["words"]) == Counter()


@pytest.mark.parametrize("name", PAGES)
def test_its_links_lead_somewhere(html_folder, name):
    for address in addresses(markdown_of(html_folder, name)):
        place = urlsplit(address)
        if not place.scheme:
            target = html_folder / unquote(place.path)
            assert target.is_file(), address
            assert not place.fragment or f'id="{place.fragment}"' in target.read_text("utf-8")


def test_no_state_of_a_widget_is_in_it(html_folder):
    pages = sorted(html_folder.glob("*.md"))
    assert max(page.stat().st_size for page in pages) < 100_000
    for page in pages:
        assert "application/" not in page.read_text("utf-8")


def test_a_drawing_is_told_once_in_words(html_folder):
    count = 0
    for name in PAGES:
        text = unescape(re.sub(r"\\(?=[^\w\s])", "", markdown_of(html_folder, name)))
        assert "<svg" not in text and "data-tensor" not in text, name
        for drawing in read(html_folder / f"{name}.html").select(".drawn > .wide"):
            words = " ".join(drawing["aria-label"].split())
            assert text.count(f"*Drawing: {words}*") == 1, words
            count += 1
    assert count > 20


def test_the_list_names_every_page_once(html_folder):
    lines = (html_folder / "llms.txt").read_text("utf-8").splitlines()
    assert lines[0] == "# Attention, Head by Head" and lines[2].startswith("> ")
    entries = [line for line in lines if line.startswith("-")]
    listed = [re.fullmatch(r"- \[[^]]+\]\((.+)\): .{50,}", entry)[1] for entry in entries]
    names = [urlsplit(address).path.rsplit("/", 1)[-1] for address in listed]
    assert sorted(names) == [f"{name}.md" for name in PAGES]
    parts = [line for line in lines if line.startswith("## ")]
    assert len(parts) == 7 and len(set(parts)) == 7


@pytest.mark.builds
def test_where_the_books_address_is_known_all_addresses_are_full(fork_site):
    for path in [fork_site / "llms.txt", *fork_site.glob("*.md")]:
        for address in addresses(path.read_text("utf-8")):
            assert urlsplit(address).scheme == "https", f"{path.name}: {address}"
    assert f"({ADDRESS}05-masking.md)" in (fork_site / "llms.txt").read_text("utf-8")
    assert f"({ADDRESS}glossary.html#term-padding-mask)" in markdown_of(fork_site, "05-masking")


def press(page):
    button = page.get_by_role("button", name="Copy page")
    button.focus()
    page.keyboard.press("Enter")


def asked_for(v):
    return [r.url for r in v.responses if r.url.endswith(".md")]


def test_the_button_copies_the_page_when_it_is_asked_to(visit, site, html_folder):
    with visit(
        f"{site}/05-masking.html", width=360, permissions=["clipboard-read", "clipboard-write"]
    ) as v:
        v.mount_all()
        assert not asked_for(v)
        press(v.page)
        v.page.get_by_text("Copied as Markdown").wait_for()
        copied = v.page.evaluate("navigator.clipboard.readText()")
        assert copied == markdown_of(html_folder, "05-masking")
        assert len(asked_for(v)) == 1
        box = v.page.locator(".copy-page-said").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
        v.page.wait_for_function("!document.querySelector('.copy-page-said').textContent")
        v.assert_no_trouble()


def test_where_nothing_may_be_copied_the_button_opens_the_markdown(visit, site):
    with visit(f"{site}/05-masking.html", permissions=[]) as v:
        v.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        press(v.page)
        v.page.wait_for_url("**/05-masking.md")


def test_from_a_file_the_button_opens_the_markdown(visit, html_folder):
    with visit((html_folder / "05-masking.html").as_uri()) as v:
        press(v.page)
        v.page.wait_for_url("**/05-masking.md")
        assert "# 5. Masking" in v.page.inner_text("body")
        v.assert_no_trouble()


def test_every_page_has_the_button_and_names_its_markdown(html_folder):
    for name in PAGES:
        page = (html_folder / f"{name}.html").read_text("utf-8")
        assert page.count(f'data-markdown="{name}.md"') == 1
        assert f'<link rel="alternate" type="text/markdown" href="{name}.md">' in page
    assert "copy-page" not in (html_folder / "search.html").read_text("utf-8")
