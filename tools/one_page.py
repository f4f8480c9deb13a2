"""Join the built pages into one page, in the order of the book: what `tools.pdf` prints.

Ids of all pages meet here, so each carries its page's name before it, and links lead to these.
"""

from __future__ import annotations

from pathlib import Path

from tools.built_pages import Book, open_book

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
    book = open_book(pages)
    contents, body = [], []
    for nth, (caption, chapters) in enumerate(book.parts):
        if caption:
            contents.append(entry(f"part-{nth}", caption))
            body.append(f'<div class="part-page"><h1 id="part-{nth}">{caption}</h1></div>')
        for stem, name in chapters.items():
            contents.append(entry(stem, name, "in-part" if caption else ""))
            body.append(chapter(book, stem, name, 2 if caption else 1))
            styles += f"@page {page_name(stem)} {{ @top-right {{ content: {quoted(name)} }} }}\n"

    return f"""\
<!doctype html>
<html lang="{book.language}" data-theme="light">
<head>
<meta charset="utf-8">
<title>{book.title}</title>
<link rel="stylesheet" href="{(pages / "_static" / "page.css").as_uri()}">
<style>
{styles}</style>
</head>
<body>
<main class="bd-main"><div class="bd-content"><div class="bd-article-container">
{book.title_page()}
<section class="contents">
<h1>Contents</h1>
{"".join(contents)}</section>
{"".join(body)}
</div></div></main>
</body>
</html>
"""


def entry(identifier: str, name: str, kind: str = "") -> str:
    """A line of the contents. `tools.pdf` writes the number of the page when it is known."""
    return (
        f'<p class="{kind}"><a href="#{identifier}">{name}</a>'
        f'<span class="leader"></span><a class="number" href="#{identifier}">000</a></p>\n'
    )


def chapter(book: Book, stem: str, name: str, level: int) -> str:
    """The text of one page, its headings `level - 1` steps lower than on the page."""
    article = book.article(stem, name, place)
    for heading in article.find_all(HEADINGS):
        heading.name = f"h{int(heading.name[1]) + level - 1}"
    for element in article.find_all(id=True):
        element["id"] = f"{stem}.{element['id']}"
    for attribute in REFERENCES:
        for element in article.find_all(attrs={attribute: True}):
            values = element[attribute].split()
            element[attribute] = " ".join(f"{stem}.{value}" for value in values)
    for picture in article.find_all("img"):
        picture["src"] = (book.pages / picture["src"]).as_uri()
    article["id"] = stem
    article["style"] = f"page: {page_name(stem)}"
    return str(article)


def place(stem: str, fragment: str) -> str:
    return f"#{stem}.{fragment}" if fragment else f"#{stem}"


def page_name(stem: str) -> str:
    """A name for CSS: it may not begin with a digit."""
    return f"p-{stem}"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'
