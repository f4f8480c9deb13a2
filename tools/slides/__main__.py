"""Write every chapter as a deck of slides, and all decks as one zip: `make slides`.

The decks are made of the built pages, with the pages' own explorers, pictures and equations, and
need no network. reveal.js shows them; the package sphinx-revealjs brings its files.
"""

from __future__ import annotations

import re
import shutil
import sys
from html import escape
from importlib.resources import files
from pathlib import Path

from tools.built_pages import Book, open_book, read
from tools.offline import LICENCES, NAME, PAGES, ROOT
from tools.slides.deck import make_slides
from tools.zips import write_zip

GUIDE = "for-instructors"
SLIDES = PAGES.parent / "slides"
OWN = Path(__file__).parent / "static"
REVEAL = files("sphinx_revealjs") / "_static" / "revealjs"
PLUGINS = ("reveal/plugin/notes/notes.js", "reveal/plugin/zoom/zoom.js")
REVEAL_FILES = ("reveal/LICENSE", "reveal/dist/reveal.css", "reveal/dist/reveal.js", *PLUGINS)
PAGE = """\
<!doctype html>
<html lang="{lang}" data-theme="light" class="js">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="_static/page.css">
<link rel="stylesheet" href="reveal/dist/reveal.css">
<link rel="stylesheet" href="slides.css">
<link rel="icon" href="_static/book_style/logo.svg" type="image/svg+xml">
{scripts}</head>
<body>
<div class="reveal"><div class="slides">
{slides}</div></div>
</body>
</html>
"""
SCRIPTS = "".join(
    f'<script defer src="{name}"></script>\n'
    for name in ("reveal/dist/reveal.js", *PLUGINS, "slides.js")
)
FIRST = """\
<section><h1>{title}</h1><div class="shown"><ol class="decks">
{decks}</ol>
<p class="keys"><kbd>→</kbd> or <kbd>Space</kbd> goes on, <kbd>S</kbd> opens the notes for the
speaker, <kbd>Esc</kbd> shows all slides, <kbd>F</kbd> fills the screen, <kbd>T</kbd> changes
between light and dark, <kbd>Alt</kbd> and a click enlarges a place.</p></div></section>
"""


def write_slides(pages: Path, target: Path) -> dict[str, int]:
    """Write the decks of all chapters that are in `pages` into the folder `target`.

    Returns:
        How many slides each deck has, by the name of its page.

    Raises:
        FileNotFoundError: there are no built pages in the folder.
        ValueError: a chapter puts nothing on a slide.
    """
    book = open_book(pages)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(OWN, target)
    for name in REVEAL_FILES:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((REVEAL / name.removeprefix("reveal/")).read_bytes())
    for name in LICENCES:
        shutil.copy(ROOT / name, target)

    counts, decks = {}, ""
    for _, chapters in book.parts:
        for stem, name in chapters.items():
            if stem[0].isdigit():
                counts[stem] = write_deck(book, stem, target)
                decks += f'<li><a href="{stem}.html">{name}</a></li>\n'
    first = FIRST.format(title=f"{escape(book.title)}: slides", decks=decks)
    write_page(target / "index.html", book.language, book.title, SCRIPTS, first)
    copy_what_they_name(pages, target)
    return counts


def write_deck(book: Book, stem: str, target: Path) -> int:
    page = read(book.pages / f"{stem}.html")
    slides = make_slides(page, plan_of(book.pages, int(stem[:2])))
    host = "".join(f"{script}\n" for script in page.select("script[data-saved]"))
    title = page.title.get_text()
    write_page(target / f"{stem}.html", book.language, title, SCRIPTS + host, "".join(slides))
    return len(slides)


def plan_of(pages: Path, chapter: int) -> dict[str, str]:
    """What the guide for instructors plans for a chapter, by the bold words of each paragraph."""
    entry = read(pages / f"{GUIDE}.html").find(id=f"chapter-{chapter}").find_parent("section")
    for link in entry.select("a[href]"):
        link.unwrap()
    parts = entry.select("p:has(> strong:first-child)")
    return {part.strong.get_text().rstrip("."): str(part) for part in parts}


def write_page(path: Path, lang: str, title: str, scripts: str, slides: str) -> None:
    text = PAGE.format(lang=lang, title=escape(title), scripts=scripts, slides=slides)
    path.write_text(text, "utf-8")


def copy_what_they_name(pages: Path, target: Path) -> None:
    """Everything of the book that the decks and its stylesheet load."""
    names = {"_static/page.css"}
    for deck in target.glob("*.html"):
        for element in read(deck).select("[src], link[href]"):
            names.add(element.get("src") or element["href"])
            if "data-saved" in element.attrs:
                names.add(f"_static/static_widgets/{element['data-saved']}")
    styles = (pages / "_static" / "page.css").read_text("utf-8")
    names |= {f"_static/{name}" for name in re.findall(r'url\("([\w./-]+)"\)', styles)}
    for name in names:
        source = pages / name.partition("?")[0]
        if source.is_file():
            place = target / source.resolve().relative_to(pages.resolve())
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)


def main() -> int:
    counts = write_slides(PAGES, SLIDES)
    target = PAGES.parent / f"{NAME}-slides.zip"
    written = sorted(path for path in SLIDES.rglob("*") if path.is_file())
    folder = f"{NAME}-slides"
    write_zip(
        target,
        {f"{folder}/{path.relative_to(SLIDES).as_posix()}": path.read_bytes() for path in written},
    )
    for stem, count in counts.items():
        print(f"{stem}: {count} slides")
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
