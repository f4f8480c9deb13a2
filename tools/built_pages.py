"""The built pages as a book in one file has them: nothing that only a window can use is left.

An explorer is its still picture, with the address of the live one; folds are open; links lead to
places of the same file. `tools.one_page` makes the PDF's page of it, `tools.epub` the EPUB.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Tag

START = "Start here"  # the landing page's place in the contents: its own title is the book's
LICENCES = """\
<p>Text and pictures: <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>.
Code: <a href="https://spdx.org/licenses/MIT.html">MIT</a>.</p>"""
# What only a window can use, and what Sphinx leaves for its scripts.
LEFT_OUT = "script, .headerlink, summary > .expanded"

Place = Callable[[str, str], str]  # a link's address in the file, from a page and an id of it or ""


@dataclass(frozen=True)
class Book:
    """What the built pages tell of the book as a whole."""

    pages: Path  # their folder
    title: str
    language: str
    site: str  # the published address; "" where the pages know none
    parts: list[tuple[str | None, dict[str, str]]]  # caption, and names of pages by their stems

    def title_page(self) -> str:
        address = f'<p><a href="{self.site}">{self.site}</a></p>' if self.site else ""
        return f"""\
<header class="title-page">
<p class="book">{escape(self.title)}</p>
<p class="subtitle">Multi-head attention in PyTorch, one operation at a time</p>
{address}{LICENCES}
</header>"""

    def article(self, stem: str, name: str, place: Place) -> Tag:
        """The text of the page `stem`, whose name in the contents is `name`."""
        article = read(self.pages / f"{stem}.html").select_one("article.bd-article")
        for element in article.select(LEFT_OUT):
            element.decompose()
        if stem == "index":
            article.h1.string = name
        for widget in article.select(".static-widget"):
            self._make_figure(widget, stem, name)
        for fold in article.select("details"):
            fold["open"] = ""
        for picture in article.find_all("img"):
            picture.attrs.pop("loading", None)  # who prints does not scroll
        for link in article.find_all("a", href=True):
            self._lead(link, stem, place)
        return article

    def _make_figure(self, widget: Tag, stem: str, name: str) -> None:
        """The still picture of an explorer, and where the live one is. Where a page shows it again,
        nothing is left.
        """
        if not widget.select_one("img, svg"):
            widget.decompose()
            return
        address = f"{self.site}{stem}.html"
        link = f'<a href="{address}">{address}</a>'
        live = link if self.site else f"the page “{name}” of the book"
        caption = f'<p class="live">The first picture of an explorer. It moves on {live}.</p>'
        widget.append(BeautifulSoup(caption, "html.parser"))

    def _lead(self, link: Tag, stem: str, place: Place) -> None:
        """Let a link of the page `stem` lead to its place, to the published book, or nowhere."""
        target = urlsplit(link["href"])
        if target.scheme:
            return
        page = posixpath.basename(target.path).removesuffix(".html") or stem
        inside = any(page in chapters for _, chapters in self.parts)
        if inside and not target.path.startswith("_"):
            link["href"] = place(page, target.fragment)
        elif self.site:
            link["href"] = self.site + link["href"]
        else:
            link.unwrap()


def open_book(pages: Path) -> Book:
    """The book whose built pages are in the folder.

    Raises:
        FileNotFoundError: there are no built pages in the folder.
    """
    if not (pages / "index.html").is_file():
        raise FileNotFoundError(f"there are no built pages in {pages}: run `make book` first")
    start = read(pages / "index.html")
    canonical = start.select_one("link[rel=canonical]")
    return Book(
        pages=pages,
        title=start.title.get_text(),
        language=start.html["lang"],
        site=posixpath.dirname(canonical["href"]) + "/" if canonical else "",
        parts=[(None, {"index": START}), *navigation(start)],
    )


def read(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def navigation(page: BeautifulSoup) -> list[tuple[str, dict[str, str]]]:
    """The parts of the book, as the navigation of every page shows them: caption, and the pages'
    names by their stems.
    """
    return [
        (
            caption.get_text(strip=True),
            {
                link["href"].removesuffix(".html"): link.get_text(" ", strip=True)
                for link in caption.find_next_sibling("ul").select("a.reference")
            },
        )
        for caption in page.select("nav.bd-links .caption")
    ]
