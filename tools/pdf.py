"""Print the built pages as one PDF: `make pdf`.

Chromium lays the joined pages out and brings the links, the outline and the tags for screen
readers. It knows no page numbers of targets, so it prints twice: the first one tells the numbers
that the contents of the second one show. The same pages, fonts and Chromium make the same bytes.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pikepdf
from matplotlib import get_data_path
from playwright.sync_api import Page, sync_playwright

from tools.chromium import CHROMIUM_ARGUMENTS, find_chromium
from tools.offline import NAME, PAGES, ROOT
from tools.one_page import join_pages

# matplotlib brings them, with nearly every symbol: the book looks the same wherever it is printed.
FONTS = {
    "Book Text": ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta"),
    "Book Code": tuple(f"DejaVuSansMono{shape}" for shape in ("", "-Bold", "-Oblique")),
    "Book Symbols": ("DejaVuSans",),  # what the two lack
}
SHAPES = ("", "font-weight: bold", "font-style: italic", "font-weight: bold; font-style: italic")

# On a busy machine a page is loaded before its fonts are, and lines would break elsewhere.
READY = """async () => {
  await Promise.all([...document.images].map((image) => {
    image.loading = "eager";
    return image.decode();
  }));
  await document.fonts.ready;
}"""
FILL = """
numbers => {
  for (const number of document.querySelectorAll(".contents .number"))
    number.textContent = numbers[decodeURI(number.hash.slice(1))];
}
"""
HEADINGS = """
() => [...document.querySelectorAll("h1, h2, h3, h4")].map(heading => heading.innerText.trim())
"""


def font_faces() -> str:
    folder = Path(get_data_path()) / "fonts" / "ttf"
    return "".join(
        f'@font-face {{ font-family: "{family}"; src: url("{(folder / f"{file}.ttf").as_uri()}");'
        f" {shape} }}\n"
        for family, files in FONTS.items()
        for file, shape in zip(files, SHAPES, strict=False)
    )


def printed(page: Page) -> pikepdf.Pdf:
    pdf = page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
    return pikepdf.open(io.BytesIO(pdf))


def page_numbers(pdf: pikepdf.Pdf) -> dict[str, int]:
    """The page of every place that a link leads to, by its id."""
    numbers = {page.objgen: nth for nth, page in enumerate(pdf.pages, 1)}
    return {
        name.removeprefix("/"): numbers[place[0].objgen] for name, place in pdf.Root.Dests.items()
    }


def entries(items: list[pikepdf.OutlineItem]) -> Iterator[pikepdf.OutlineItem]:
    for item in items:
        yield item
        yield from entries(item.children)


def finish(pdf: pikepdf.Pdf, headings: list[str], target: Path) -> None:
    """Write it small and without times.

    Chromium 150 says the words of a heading twice in the outline where a page begins with it.
    """
    with pdf.open_outline() as outline:
        for item, words in zip(entries(outline.root), headings, strict=True):
            item.title = words
    for date in ("/CreationDate", "/ModDate"):
        del pdf.docinfo[date]
    pdf.save(target, object_stream_mode=pikepdf.ObjectStreamMode.generate, deterministic_id=True)


def write_pdf(pages: Path, target: Path) -> None:
    """Print the pages of the folder `pages` into the file `target`.

    Raises:
        FileNotFoundError: there are no built pages in the folder.
        RuntimeError: no Chromium was found and none could be installed.
    """
    book = join_pages(pages, font_faces() + (ROOT / "tools" / "pdf.css").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "book.html"
        path.write_text(book, "utf-8")
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
        )
        page = browser.new_page()
        page.goto(path.as_uri(), timeout=300_000)  # all pages at once, perhaps on a busy machine
        page.evaluate(READY)
        page.evaluate(FILL, page_numbers(printed(page)))
        finish(printed(page), page.evaluate(HEADINGS), target)
        browser.close()


def main() -> int:
    target = PAGES.parent / f"{NAME}.pdf"
    write_pdf(PAGES, target)
    with pikepdf.open(target) as pdf:
        pages = len(pdf.pages)
    print(f"{target.relative_to(ROOT)}: {pages} pages, {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
