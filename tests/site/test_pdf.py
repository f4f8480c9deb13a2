"""The PDF that `make pdf` writes: the whole book, its outline, its links, its glyphs and its tags.

pypdf reads it, since pikepdf wrote it; pdffonts gives a second answer on fonts where it is.
"""

import re
import shutil
import subprocess
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from tools.built_pages import navigation, read
from tools.one_page import join_pages
from tools.pdf import write_pdf

pytestmark = pytest.mark.builds

OURS = re.compile(r"STIX|DejaVu")  # what the environment brings; other fonts are the machine's
HEADINGS = ["h1", "h2", "h3", "h4"]


def print_book(pages, target):
    """In a thread of its own: this one has a browser running, and Playwright allows one in each."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(write_pdf, pages, target).result()


@pytest.fixture(scope="session")
def pdf_path(html_folder, made_once):
    """The PDF of the built pages, printed once for all tests."""
    return made_once("book.pdf", lambda path: print_book(html_folder, path))


@pytest.fixture(scope="session")
def pdf(pdf_path):
    return PdfReader(pdf_path)


@pytest.fixture(scope="session")
def joined(html_folder):
    """The one page that is printed."""
    return BeautifulSoup(join_pages(html_folder, ""), "html.parser")


@pytest.fixture(scope="session")
def number(pdf):
    """A function that gives the number of the page that a place of the PDF is on."""
    numbers = {page.indirect_reference.idnum: nth for nth, page in enumerate(pdf.pages, 1)}
    return lambda place: numbers[place.page.idnum]


def outline(items, level=1):
    """(level, item) of every entry."""
    for item in items:
        if isinstance(item, list):
            yield from outline(item, level + 1)
        else:
            yield level, item


def missing_glyphs(pdf):
    """How often a page draws glyph 0, the box of a character that no font has, by page."""
    found = {}
    for nth, page in enumerate(pdf.pages, 1):
        content = page.get_contents().get_data()
        # Chromium writes glyphs as numbers of four digits: <00480049> Tj.
        assert not re.search(rb"[\])]\s*T[jJ]", content), f"page {nth} writes text another way"
        drawn = b"".join(re.findall(rb"<([0-9A-F]+)> Tj", content))
        if times := sum(drawn[at : at + 4] == b"0000" for at in range(0, len(drawn), 4)):
            found[nth] = times
    return found


def fonts(pdf):
    """Every font of the PDF, by its name without the six letters before it."""
    resources = [page["/Resources"].get("/Font", {}) for page in pdf.pages]
    found = [font.get_object() for fonts in resources for font in fonts.values()]
    return {font["/BaseFont"].partition("+")[2]: font for font in found}


def drawn_characters(pdf):
    """Every character that some font's glyphs stand for, as the PDF tells a screen reader."""
    drawn = set()
    for font in fonts(pdf).values():
        table = font["/ToUnicode"].get_data().decode("ascii")
        for first, last, target in re.findall(
            r"^<(\w+)>(?: <(\w+)>)? <(\w+)>$", table, re.MULTILINE
        ):
            text = bytes.fromhex(target).decode("utf-16-be")
            many = int(last or first, 16) - int(first, 16)
            drawn |= {*text, *(chr(ord(text[-1]) + step) for step in range(many + 1))}
    return drawn


def test_it_holds_the_whole_book_and_is_small(pdf, pdf_path):
    assert 300 < len(pdf.pages) < 900
    assert pdf_path.stat().st_size < 25e6
    assert {(round(page.mediabox.width), round(page.mediabox.height)) for page in pdf.pages} == {
        (595, 842)
    }
    assert all(page.get_contents().get_data() for page in pdf.pages), "an empty page"


def test_a_screen_reader_finds_tags_a_language_and_a_title(pdf):
    root = pdf.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"]
    assert root["/StructTreeRoot"]["/K"]
    assert root["/Lang"] == "en"
    assert pdf.metadata.title == "Attention, Head by Head"
    assert root["/ViewerPreferences"]["/DisplayDocTitle"]


def test_the_outline_has_every_part_chapter_and_section(pdf, joined, number):
    entries = list(outline(pdf.outline))
    headings = [(int(each.name[1]), each.get_text().strip()) for each in joined(HEADINGS)]
    assert [(level, item.title) for level, item in entries] == headings
    pages = [number(item) for _, item in entries]
    assert pages == sorted(pages)
    print(f"{len(entries)} entries in the outline")


def test_every_page_of_the_navigation_is_there(joined, html_folder):
    parts = navigation(read(html_folder / "index.html"))
    stems = ["index", *(stem for _, chapters in parts for stem in chapters)]
    assert [article["id"] for article in joined("article")] == stems
    pages = {path.stem for path in html_folder.glob("*.html")} - {"404", "search"}
    assert set(stems) == pages
    assert [part.get_text() for part in joined.select(".part-page")] == [part for part, _ in parts]


def test_the_contents_tell_the_page_of_every_chapter(pdf, joined, number):
    text = "\n".join(page.extract_text() for page in pdf.pages[1:3])
    places = pdf.named_destinations
    lines = joined.select(".contents p")
    for line in lines:
        link = line.a
        page = number(places[link["href"].replace("#", "/")])
        assert re.search(rf"{re.escape(link.get_text())}\s*{page}\b", text), link
        assert f"\n{page}\n" in f"\n{pdf.pages[page - 1].extract_text()}\n", "the page's own number"
    assert len(lines) > 30


def test_every_link_leads_somewhere(pdf, joined, number):
    """Inside the book to a place of it, and elsewhere to another site."""
    ids = [element["id"] for element in joined(id=True)]
    assert len(ids) == len(set(ids))
    links = joined("a", href=re.compile("^#"))
    # A drawing's narrow form, for a phone, is not printed.
    inside = [link["href"][1:] for link in links if not link.find_parent(class_="narrow")]
    assert set(inside) <= set(ids)
    annotations = [each.get_object() for page in pdf.pages for each in page.get("/Annots", ())]
    places = pdf.named_destinations
    found = [str(each["/Dest"]) for each in annotations if "/Dest" in each]
    assert set(found) == {f"/{place}" for place in inside} == set(places)
    assert len(found) >= len(inside)  # one that is broken between lines is two
    outside = [str(each["/A"]["/URI"]) for each in annotations if "/A" in each]
    assert {urlsplit(address).scheme for address in outside} == {"https"}
    assert len(found) + len(outside) == len(annotations)
    print(f"{len(found)} links inside, {len(outside)} to other sites")


def test_no_character_is_missing(pdf, joined):
    assert missing_glyphs(pdf) == {}
    assert all(OURS.match(name) for name in fonts(pdf)), list(fonts(pdf))
    drawn = drawn_characters(pdf)
    assert "\ufffd" not in drawn
    # Letters of formulas become italic ones of their own; symbols stay what they are. The brace
    # below a formula is put together from pieces that stand for no character.
    text = joined.body.get_text()
    symbols = {each for each in text if unicodedata.category(each)[0] in "SN"} - {"⏟"}
    assert symbols <= drawn, sorted(symbols - drawn)
    assert symbols >= set("√→≤−×∑∞"), "the book has these"


def test_a_missing_character_is_found(browser, tmp_path):
    page = browser.new_page()
    page.set_content("<p>sound \u0378</p>")  # which Unicode has given to nothing
    page.pdf(path=tmp_path / "box.pdf")
    page.close()
    assert missing_glyphs(PdfReader(tmp_path / "box.pdf")) == {1: 1}


def test_pdffonts_finds_every_font_embedded_and_readable(pdf_path):
    if not shutil.which("pdffonts"):
        pytest.skip("pdffonts is not here: apt-get install poppler-utils brings it")
    done = subprocess.run(["pdffonts", pdf_path], capture_output=True, text=True, check=True)
    head, rule, *lines = done.stdout.splitlines()
    assert head.split()[:6] == ["name", "type", "encoding", "emb", "sub", "uni"] and rule
    assert lines and all(re.search(r" yes yes yes +\d+ +0$", line) for line in lines), done.stdout


def test_explorers_are_pictures_and_what_is_folded_is_open(joined, explorer_stems):
    # Steps are a drawing; its narrow one, for a phone, is not printed.
    of_an_explorer = ".static-widget :is(img, .wide)"
    pictures = {each["id"]: each.select(of_an_explorer) for each in joined("article")}
    shown = {stem: len(found) for stem, found in pictures.items() if found}
    assert shown == {stem: len(sources) for stem, sources in explorer_stems.items()}
    for picture in (picture for found in pictures.values() for picture in found):
        assert picture.get("alt") or picture.get("aria-label")
    assert not joined.select("details:not([open]), script, .headerlink")
    assert joined.get_text().count("The first picture of an explorer.") == sum(shown.values())


@pytest.mark.everything
def test_a_published_book_tells_where_its_explorers_live(fork_site):
    page = BeautifulSoup(join_pages(fork_site, ""), "html.parser")
    site = "https://someone.github.io/fork/"
    assert page.select_one(f'.title-page a[href="{site}"]')
    live = page.select_one('article[id="05-masking"] .live')
    assert live.get_text().endswith(f"It moves on {site}05-masking.html.")


@pytest.mark.everything
def test_the_same_pages_make_the_same_bytes(html_folder, tmp_path):
    """Of a book with two pages: all of them take minutes, and are printed in the same way."""
    shutil.copytree(html_folder, tmp_path / "pages")
    index = tmp_path / "pages" / "index.html"
    page = read(index)
    for item in page.select("nav.bd-links li")[2:]:
        item.decompose()
    index.write_text(str(page), "utf-8")
    one, other = tmp_path / "one.pdf", tmp_path / "other.pdf"
    for target in (one, other):
        print_book(tmp_path / "pages", target)
    assert len(PdfReader(one).pages) > 5
    assert one.read_bytes() == other.read_bytes()
