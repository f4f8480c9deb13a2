"""What search engines, previews and lost readers get from a book whose address is known."""

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from book._ext.preview_cards import remove_cards
from book._ext.sitemap import write_sitemap

pytestmark = pytest.mark.builds

BOOK = Path(__file__).parents[2] / "book"
PAGES = sorted(path.stem for path in BOOK.iterdir() if path.suffix in (".ipynb", ".md"))
ADDRESS = "https://someone.github.io/fork/"  # of conftest's fork
LICENCES = {"https://creativecommons.org/licenses/by/4.0/", "https://spdx.org/licenses/MIT.html"}


class Head(HTMLParser):
    """The meta elements and links of a page."""

    def __init__(self, path):
        super().__init__()
        self.meta, self.links = {}, []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "meta" and "content" in given:
            self.meta[given.get("property", given.get("name"))] = given["content"]
        if tag in ("link", "a") and "rel" in given:
            self.links.append((given["rel"], given["href"]))

    def linked(self, rel):
        return [address for kind, address in self.links if kind == rel]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_introduces_itself(fork_site, page):
    head = Head(fork_site / f"{page}.html")
    address = ADDRESS if page == "index" else f"{ADDRESS}{page}.html"
    assert head.linked("canonical") == [address]
    assert 50 <= len(head.meta["description"]) <= 400
    assert "$" not in head.meta["description"] and "\\" not in head.meta["description"]
    expected = {
        "og:url": address,
        "og:type": "website" if page == "index" else "article",
        "og:description": head.meta["description"],
        "og:image": f"{ADDRESS}cards/{page}.png",
        "og:image:width": "1200",
        "og:image:height": "630",
        "twitter:card": "summary_large_image",
        "twitter:image:alt": head.meta["og:image:alt"],
    }
    assert {name: head.meta[name] for name in expected} == expected
    heading = re.search(r"<h1>([^<]*)<", (fork_site / f"{page}.html").read_text("utf-8"))[1]
    assert head.meta["og:title"] == heading
    assert len(head.meta["og:image:alt"]) >= 20


def test_no_two_pages_introduce_themselves_alike(fork_site):
    heads = [Head(fork_site / f"{page}.html").meta for page in PAGES]
    for name in ("description", "og:title", "og:image"):
        assert len({head[name] for head in heads}) == len(PAGES), name


@pytest.mark.parametrize("page", PAGES)
def test_a_card_is_a_picture_of_its_page(fork_site, page):
    path = fork_site / "cards" / f"{page}.png"
    with Image.open(path) as card:
        assert (card.format, card.size) == ("PNG", (1200, 630))
        pixels = np.asarray(card.convert("RGB"), int)[226:]
        assert card.convert("L").crop((56, 126, 1144, 226)).getextrema()[0] < 60, "no title"
    # Coloured is what an explorer shows, six dots at least, or the logo; the text is nearly grey.
    assert np.sum(np.ptp(pixels, axis=-1) > 40) > 200, "no picture"
    assert path.stat().st_size < 100_000


def test_crawlers_are_told_every_page(fork_site):
    names = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    sitemap = ElementTree.parse(fork_site / "sitemap.xml")
    listed = [loc.text for loc in sitemap.iterfind("s:url/s:loc", names)]
    assert sorted(listed) == sorted(
        address
        for page in PAGES
        for address in Head(fork_site / f"{page}.html").linked("canonical")
    )
    assert f"Sitemap: {ADDRESS}sitemap.xml" in (fork_site / "robots.txt").read_text("utf-8")


def test_without_an_address_nothing_is_left_of_one(tmp_path):
    left = ("robots.txt", "sitemap.xml", "cards/index.png")
    (tmp_path / "cards").mkdir()
    for name in (*left, "index.html"):
        (tmp_path / name).touch()
    app = SimpleNamespace(
        outdir=tmp_path,
        builder=SimpleNamespace(format="html"),
        config=SimpleNamespace(html_baseurl=""),
    )
    for step in (remove_cards, write_sitemap):
        step(app, None)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


@pytest.fixture
def published(fork_site, browser):
    """A function that opens a page at the fork's own address, as GitHub Pages would answer."""
    contexts = []

    def answer(route):
        path = urlsplit(route.request.url).path
        file = fork_site / path.removeprefix("/fork/")
        if path.startswith("/fork/") and file.is_file():
            route.fulfill(path=file)
        else:
            route.fulfill(status=404, path=fork_site / "404.html")

    def open_page(place, theme="light", width=1280):
        context = browser.new_context(
            color_scheme=theme, viewport={"width": width, "height": 900}, reduced_motion="reduce"
        )
        contexts.append(context)
        context.route("**/*", answer)
        page = context.new_page()
        page.missing = []
        page.on("response", lambda r: r.status == 404 and page.missing.append(r.url))
        page.goto(ADDRESS + place)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_a_wrong_address_leads_on(published, theme, width):
    page = published("no/such/page.html", theme, width)
    assert page.missing == [ADDRESS + "no/such/page.html"], "the page needs what is not there"
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.evaluate("getComputedStyle(document.querySelector('.licences')).marginTop") == "0px"
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert not Axe().run(page).response["violations"]

    page.locator("main").get_by_role("link", name="Masking").click()
    page.wait_for_url(ADDRESS + "05-masking.html")
    page.go_back()
    page.locator("main input[name=q]").fill("mask")
    page.keyboard.press("Enter")
    page.wait_for_url(ADDRESS + "search.html?q=mask")
    page.locator("#search-results li a").nth(1).click()
    page.wait_for_url(ADDRESS + "05-masking.html*")
    assert set(page.missing) == {ADDRESS + "no/such/page.html"}


def test_every_page_has_its_licences_and_the_logo(html_folder, page_name):
    head = Head(html_folder / page_name)
    assert set(head.linked("license")) == LICENCES
    icons = head.linked("icon")
    assert [Path(icon).suffix for icon in icons] == [".png", ".svg"]
    assert all((html_folder / icon).is_file() for icon in icons)
    logo = re.search(
        r'<img src="([^"]*logo.svg)"[^>]*alt="([^"]+)"',
        (html_folder / page_name).read_text("utf-8"),
    )
    assert (html_folder / logo[1]).is_file()
