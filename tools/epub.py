"""Write the built pages as one EPUB 3, a book for e-readers: `make epub`.

An EPUB is a zip of XHTML, pictures and a stylesheet, with a list of them and a table of contents.
ebooklib would write these two alone, is under the AGPL, and gives its zips the time of the day:
here the same pages of the same commit make the same bytes.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import yaml
from bs4 import BeautifulSoup, Tag

from tools.built_pages import LICENCES, START, Book, open_book
from tools.offline import NAME, PAGES, ROOT
from tools.repository import git
from tools.zips import write_zip

MATHML = "http://www.w3.org/1998/Math/MathML"
# The kinds of files that every e-reader takes.
MEDIA_TYPES = {
    ".xhtml": "application/xhtml+xml",
    ".css": "text/css",
    ".gif": "image/gif",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
# What a text holds beside XHTML, which the list of files has to say.
HELD = {"mathml": b"<math ", "svg": b"<svg "}
CONTENTS = "_contents.xhtml"
FONT = "_static/mathml/math.woff2"  # of the pages' equations, cut down to their characters
FIRST_TIME = 315532800  # 1 January 1980, as in every zip: where no commit tells a later one
CONTAINER = """\
<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles>
<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/>
</rootfiles>
</container>
"""
# In the words of schema.org, for a library that tells its readers what they can use.
ACCESSIBILITY = """\
<meta property="schema:accessMode">textual</meta>
<meta property="schema:accessMode">visual</meta>
<meta property="schema:accessModeSufficient">textual</meta>
<meta property="schema:accessModeSufficient">textual,visual</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityFeature">displayTransformability</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">readingOrder</meta>
<meta property="schema:accessibilityFeature">structuralNavigation</meta>
<meta property="schema:accessibilityFeature">tableOfContents</meta>
<meta property="schema:accessibilityHazard">none</meta>
<meta property="schema:accessibilitySummary">Every picture has a text that says what it shows, \
equations are MathML with their TeX as alternative text, \
and nothing is told by colour alone.</meta>"""


def write_epub(pages: Path, target: Path) -> None:
    """Write the pages of the folder `pages` into the file `target`.

    Raises:
        FileNotFoundError: there are no built pages in the folder.
    """
    book = open_book(pages)
    articles = {
        stem: chapter(book, stem, name)
        for _, chapters in book.parts
        for stem, name in chapters.items()
    }
    texts = {
        "_title.xhtml": document(book, book.title, book.title_page()),
        CONTENTS: document(book, "Contents", contents(book, articles)),
    }
    for stem, article in articles.items():
        texts[place(stem)] = document(book, article.h1.get_text(), str(article))
    pictures = {img["src"] for article in articles.values() for img in article("img")}
    files = {name: text.encode() for name, text in texts.items()}
    files["book.css"] = (ROOT / "tools" / "epub.css").read_bytes()
    for name in [FONT, *sorted(pictures)]:
        files[name] = (pages / name).read_bytes()
    container = {
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": CONTAINER.encode(),
        "book/package.opf": package(book, files, list(texts)).encode(),
    }
    for name, content in files.items():
        container[f"book/{name}"] = content
    write_zip(target, container, stored=["mimetype"])


def chapter(book: Book, stem: str, name: str) -> Tag:
    """The text of one page, in what XHTML allows."""
    article = book.article(stem, name, place)
    for equation in article("math"):
        equation["xmlns"] = MATHML
    for drawing in article.select(".drawn > .wide"):
        drawing.decompose()  # the one for a phone fits every e-reader
    for drawing in article("svg"):
        drawing["viewBox"] = drawing.attrs.pop("viewbox")  # the parser of HTML writes it small
    for line in article.select("summary > p"):
        line.name = "span"
    for code in article.select(".highlight pre"):
        code.replace_with(in_lines(code))
    return article


def in_lines(code: Tag) -> BeautifulSoup:
    """Code as lines, which the stylesheet indents where they are too long for a small screen.

    Of its thousands of coloured words only comments stay marked: a slow e-reader has less to do.
    """
    for word in code.select("span:not(.c1)"):
        word.unwrap()
    lines = code.decode_contents().splitlines(keepends=True)
    marked = "".join(f'<span class="line">{line}</span>' for line in lines)
    return BeautifulSoup(f"<pre>{marked}</pre>", "html.parser")


def place(stem: str, fragment: str = "") -> str:
    return f"{stem}.xhtml#{fragment}" if fragment else f"{stem}.xhtml"


def contents(book: Book, articles: dict[str, Tag]) -> str:
    """The parts, their pages and the pages' sections; for programs, where the text begins."""
    lines = []
    for caption, chapters in book.parts:
        pages = [
            line(name, place(stem), sections(articles[stem], stem))
            for stem, name in chapters.items()
        ]
        lines += [f"<li><span>{escape(caption)}</span>{ordered(pages)}</li>"] if caption else pages
    return f"""\
<nav epub:type="toc" role="doc-toc">
<h1>Contents</h1>
{ordered(lines)}
</nav>
<nav epub:type="landmarks" hidden="">
<h2>Landmarks</h2>
<ol>
<li><a epub:type="toc" href="{CONTENTS}">Contents</a></li>
<li><a epub:type="bodymatter" href="{place("index")}">{START}</a></li>
</ol>
</nav>"""


def sections(article: Tag, stem: str) -> list[str]:
    return [
        line(heading.get_text(" ", strip=True), place(stem, heading.parent["id"]))
        for heading in article.select("section[id] > h2")
    ]


def line(name: str, address: str, below: Sequence[str] = ()) -> str:
    return f'<li><a href="{escape(address)}">{escape(name)}</a>{ordered(below)}</li>\n'


def ordered(lines: Sequence[str]) -> str:
    return f"<ol>\n{''.join(lines)}</ol>" if lines else ""


def document(book: Book, title: str, body: str) -> str:
    return f"""\
<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"
  lang="{book.language}" xml:lang="{book.language}">
<head>
<title>{escape(title)}</title>
<link rel="stylesheet" href="book.css"/>
</head>
<body>
{body}
</body>
</html>
"""


def package(book: Book, files: dict[str, bytes], texts: list[str]) -> str:
    """What the book is, all files of it, and the order in which the texts are read."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    authors = [
        author.get("name") or f"{author['given-names']} {author['family-names']}"
        for author in citation["preferred-citation"]["authors"]
    ]
    creators = "\n".join(f"<dc:creator>{escape(author)}</dc:creator>" for author in authors)
    # Every edition of one book has the same identifier, and its own time.
    identifier = uuid.uuid5(uuid.NAMESPACE_URL, book.site + book.title)
    seconds = int(git(ROOT, "log", "-1", "--format=%ct") or FIRST_TIME)
    modified = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    licences = " ".join(BeautifulSoup(LICENCES, "html.parser").get_text().split())
    names = {name: f"file-{nth}" for nth, name in enumerate(files, 1)}
    manifest = "\n".join(
        f'<item id="{names[name]}" href="{name}" media-type="{MEDIA_TYPES[Path(name).suffix]}"'
        f"{properties(name, content)}/>"
        for name, content in files.items()
    )
    spine = "\n".join(f'<itemref idref="{names[text]}"/>' for text in texts)
    return f"""\
<?xml version="1.0" encoding="utf-8"?>
<package version="3.0" xmlns="http://www.idpf.org/2007/opf" unique-identifier="identifier"
  xml:lang="{book.language}">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="identifier">urn:uuid:{identifier}</dc:identifier>
<dc:title>{escape(book.title)}</dc:title>
<dc:language>{book.language}</dc:language>
{creators}
<dc:description>{escape(citation["abstract"])}</dc:description>
<dc:rights>{escape(licences)}</dc:rights>
<meta property="dcterms:modified">{modified}</meta>
{ACCESSIBILITY}
</metadata>
<manifest>
{manifest}
</manifest>
<spine>
{spine}
</spine>
</package>
"""


def properties(name: str, content: bytes) -> str:
    if name == CONTENTS:
        return ' properties="nav"'
    found = [kind for kind, tag in HELD.items() if tag in content]
    return f' properties="{" ".join(found)}"' if found else ""


def main() -> int:
    target = PAGES.parent / f"{NAME}.epub"
    write_epub(PAGES, target)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
