"""Join the built pages into one page, in the order of the book: what `tools.pdf` prints.

Ids of all pages meet here, so each carries its page's name before it, and links lead to these.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Tag

START = "Start here"  # the landing page's place in the contents: its own title is the book's
LICENCES = """\
<p>Text and pictures: <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>.
Code: <a href="https://spdx.org/licenses/MIT.html">MIT</a>.</p>"""
# What only a window can use, and what Sphinx leaves for its scripts.
NOT_PRINTED = "script, .headerlink, summary > .expanded"
HEADINGS = ["h1", "h2", "h3", "h4"]
REFERENCES = ("for", "aria-labelledby", "aria-describedby")


def join_pages(pages: Path, styles: str) -> str:
    """One page with a title, the contents, and all pages of the navigation under their parts.

    Args:
        pages: the folder of the built pages. A page of it may know the book's published address.
        styles: what stands in its head after the pages' own stylesheet.

    Raises:
        FileNotFoundError: there are no built pages in the folder.
    """
    if not (pages / "index.html").is_file():
        raise FileNotFoundError(f"there are no built pages in {pages}: run `make book` first")
    start = read(pages / "index.html")
    canonical = start.select_one("link[rel=canonical]")
    site = posixpath.dirname(canonical["href"]) + "/" if canonical else ""
    title = start.title.get_text()
    parts = [(None, {"index": START}), *navigation(start)]
    stems = {stem for _, chapters in parts for stem in chapters}

    contents, body = [], []
    for nth, (caption, chapters) in enumerate(parts):
        if caption:
            contents.append(entry(f"part-{nth}", caption))
            body.append(f'<div class="part-page"><h1 id="part-{nth}">{caption}</h1></div>')
        for stem, name in chapters.items():
            contents.append(entry(stem, name, "in-part" if caption else ""))
            body.append(chapter(pages, stem, name, 2 if caption else 1, stems, site))
            styles += f"@page {page_name(stem)} {{ @top-right {{ content: {quoted(name)} }} }}\n"

    address = f'<p><a href="{site}">{site}</a></p>' if site else ""
    return f"""\
<!doctype html>
<html lang="{start.html["lang"]}" data-theme="light">
<head>
<meta charset="utf-8">
<title>{title}</title>
<link rel="stylesheet" href="{(pages / "_static" / "page.css").as_uri()}">
<style>
{styles}</style>
</head>
<body>
<main class="bd-main"><div class="bd-content"><div class="bd-article-container">
<header class="title-page">
<p class="book">{title}</p>
<p class="subtitle">Multi-head attention in PyTorch, one operation at a time</p>
{address}{LICENCES}
</header>
<section class="contents">
<h1>Contents</h1>
{"".join(contents)}</section>
{"".join(body)}
</div></div></main>
</body>
</html>
"""


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


def entry(identifier: str, name: str, kind: str = "") -> str:
    """A line of the contents. `tools.pdf` writes the number of the page when it is known."""
    return (
        f'<p class="{kind}"><a href="#{identifier}">{name}</a>'
        f'<span class="leader"></span><a class="number" href="#{identifier}">000</a></p>\n'
    )


def chapter(pages: Path, stem: str, name: str, level: int, stems: set[str], site: str) -> str:
    """The text of one page, its headings `level - 1` steps lower than on the page."""
    article = read(pages / f"{stem}.html").select_one("article.bd-article")
    for element in article.select(NOT_PRINTED):
        element.decompose()
    if stem == "index":
        article.h1.string = name
    for widget in article.select(".static-widget"):
        make_figure(widget, stem, name, site)
    for fold in article.select("details"):
        fold["open"] = ""
    for heading in article.find_all(HEADINGS):
        heading.name = f"h{int(heading.name[1]) + level - 1}"
    for element in article.find_all(id=True):
        element["id"] = f"{stem}.{element['id']}"
    for attribute in REFERENCES:
        for element in article.find_all(attrs={attribute: True}):
            values = element[attribute].split()
            element[attribute] = " ".join(f"{stem}.{value}" for value in values)
    for picture in article.find_all("img"):
        picture["src"] = (pages / picture["src"]).as_uri()
        picture.attrs.pop("loading", None)  # the printer does not scroll
    for link in article.find_all("a", href=True):
        lead(link, stem, stems, site)
    article["id"] = stem
    article["style"] = f"page: {page_name(stem)}"
    return str(article)


def make_figure(widget: Tag, stem: str, name: str, site: str) -> None:
    """The still picture of an explorer, and where the live one is."""
    address = f"{site}{stem}.html"
    live = f'<a href="{address}">{address}</a>' if site else f"the page “{name}” of the book"
    caption = f'<p class="live">The first picture of an explorer. It moves on {live}.</p>'
    widget.append(BeautifulSoup(caption, "html.parser"))


def lead(link: Tag, stem: str, stems: set[str], site: str) -> None:
    """Let a link of the page `stem` lead to its target here, to the published book, or nowhere."""
    target = urlsplit(link["href"])
    if target.scheme:
        return
    page = posixpath.basename(target.path).removesuffix(".html") or stem
    if page in stems and not target.path.startswith("_"):
        link["href"] = f"#{page}.{target.fragment}" if target.fragment else f"#{page}"
    elif site:
        link["href"] = site + link["href"]
    else:
        link.unwrap()


def page_name(stem: str) -> str:
    """A name for CSS: it may not begin with a digit."""
    return f"p-{stem}"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'
