"""The zip that `make offline` writes: the book from a folder, in a browser without a network."""

import zipfile

import pytest

from tools.offline import NAME, write_offline

pytestmark = pytest.mark.builds

# Whether the equations stand on the page, in the book's own font, also those in closed hints.
EQUATIONS = """
async () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  await document.fonts.ready;
  const drawn = [...document.querySelectorAll("math")].filter(
    equation => equation.checkVisibility() && equation.getBoundingClientRect().width > 0);
  const font = [...document.fonts].find(font => font.family.includes("Book Math"));
  return {there: document.querySelectorAll("main math").length, drawn: drawn.length,
          font: font?.status};
}
"""


@pytest.fixture(scope="session")
def unpacked(html_folder, tmp_path_factory):
    """The folder that a reader has after unpacking."""
    folder = tmp_path_factory.mktemp("stick")
    write_offline(html_folder, folder / "book.zip")
    with zipfile.ZipFile(folder / "book.zip") as archive:
        archive.extractall(folder)
    return folder / NAME


@pytest.mark.one_in(6)
def test_every_page_works(visit, unpacked, page_name):
    with visit((unpacked / page_name).as_uri(), offline=True) as v:
        if v.mount_all():
            for first in v.page.locator(".static-widget[id]").all():  # some are shown twice
                move(first)

        equations = v.page.evaluate(EQUATIONS)
        if equations["there"]:
            assert equations["drawn"] and equations["font"] == "loaded"

        shown = set()
        for _ in range(3):
            v.page.locator(".theme-switch-button").click()
            shown.add(v.page.evaluate("document.documentElement.dataset.theme"))
        assert shown == {"light", "dark"}
        v.assert_no_trouble()


def move(explorer):
    """Move a slider by the keyboard, or the first control; the picture follows once it is seen."""
    controls = explorer.locator(".sw-control")
    sliders = controls.locator("input[type=range]")
    control = (sliders if sliders.count() else controls.locator("select, input")).first
    picture = explorer.locator("[data-picture]")
    before = picture.inner_html()
    kind, at_the_end = control.evaluate("c => [c.type, c.value === c.max]")
    keys = {"checkbox": "Space", "select-one": "ArrowDown"}
    control.press(keys.get(kind, "ArrowLeft" if at_the_end else "ArrowRight"))
    explorer.page.wait_for_function(
        "([picture, before]) => picture.innerHTML !== before",
        arg=[picture.element_handle(), before],
        timeout=3000,
    )


def test_search_finds_pages(visit, unpacked):
    with visit((unpacked / "search.html").as_uri(), offline=True) as v:
        v.page.locator("main input[name=q]").fill("mask")
        v.page.keyboard.press("Enter")
        found = v.page.locator("#search-results li a")
        found.nth(1).wait_for()
        titles = found.all_inner_texts()
        assert titles[:2] == ["Glossary > mask", "5. Masking"]
        found.nth(1).click()
        v.page.wait_for_url("**/05-masking.html*")
        v.assert_no_trouble()


def test_it_is_one_folder_that_says_what_to_open(unpacked):
    assert [path.name for path in unpacked.parent.iterdir() if path.is_dir()] == [NAME]
    assert (unpacked / "index.html").is_file()
    assert "index.html" in (unpacked / "READ ME.txt").read_text("utf-8")
    assert (unpacked / "LICENSE").is_file() and (unpacked / "LICENSE-TEXT").is_file()
    assert not (unpacked / "404.html").exists()


def test_every_page_is_in_it_as_markdown_too(unpacked):
    pages = {path.stem for path in unpacked.glob("*.html")} - {"search"}
    assert {path.stem for path in unpacked.glob("*.md")} == pages
    assert (unpacked / "llms.txt").is_file()


@pytest.mark.everything
def test_the_same_pages_make_the_same_bytes(html_folder, tmp_path):
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    write_offline(html_folder, first)
    write_offline(html_folder, second)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = [entry.filename for entry in archive.infolist()]
        assert names == sorted(names)
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
