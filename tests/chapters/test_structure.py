"""Every chapter has the parts that the book promises, and nothing that a reader cannot use."""

import re

import nbformat
import pytest

from tools.refresh import OF_THIS_MACHINE, chapters, normalised, notebooks
from tools.widget_state import WIDGET_STATE, WIDGET_VIEW, link_ends

PATHS = notebooks()
NAMES = [path.stem for path in PATHS]
NUMBERED = chapters()[1:]
PAGES = sorted(PATHS[0].parent.glob("*.md")) if PATHS else []

BANNED = re.compile(r"\b(simply|just|obviously|of course)\b", re.IGNORECASE)
UNCOMPARED = re.compile(r"NBVAL_\w+|PYTEST_VALIDATE_\w+")
LOADED_FROM_ELSEWHERE = re.compile(
    r"""(?:!\[[^\]]*\]\(|(?:src|srcset|poster|action)\s*=\s*["']?|url\(["']?|@import\s+["']?"""
    r"""|<link[^>]*href\s*=\s*["']?)\s*(?:https?:)?//""",
    re.IGNORECASE,
)
CONTROLS = ("SelectionSliderModel", "DropdownModel", "CheckboxModel")
PARTS = {
    "a title": r"\A# \S",
    "how long it takes": r"\b\d+ minutes\b",
    "what goes wrong": r"^## What goes wrong$",
    "questions": r"^## Questions$",
    "folded answers": r"^<details>$",
    "the chapter in five lines": r"^## The chapter in five lines\n+(?:- .+\n(?: .+\n)*){5}(?!- )",
}


@pytest.fixture(params=PATHS, ids=NAMES)
def path(request):
    return request.param


@pytest.fixture
def chapter(path):
    return nbformat.read(path, as_version=4)


def sources(notebook, kind):
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


def outputs(notebook):
    return [
        (cell, output)
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def models(notebook):
    return notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})


def prose(text):
    """The words of a page: its text without code, mathematics and the targets of links."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", " ", text)


def test_the_book_has_its_chapters():
    numbers = [path.stem.split("-")[0] for path in chapters()]
    assert numbers == ["index"] + [f"{number:02}" for number in range(1, len(numbers))]
    assert len(numbers) >= 8


def test_every_notebook_begins_with_the_same_setup(chapter):
    setup = next(cell for cell in chapter.cells if cell.cell_type == "code")
    assert (setup.id, setup.metadata) == ("setup", {"tags": ["remove-cell"]})
    assert setup.source == nbformat.read(PATHS[0], as_version=4).cells[1].source, (
        "the cell is the same everywhere: copy it from the landing page"
    )
    assert setup.source.splitlines().count('PUBLISHED = ""') == 1, "a published copy fills it in"
    assert setup.outputs == []


def test_every_cell_was_run_in_order(chapter):
    cells = [c for c in chapter.cells if c.cell_type == "code" and c.source.strip()]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


def test_no_cell_failed_unless_it_says_so(chapter):
    unexpected = [
        f"{cell.id}: {output.ename}: {output.evalue}"
        for cell, output in outputs(chapter)
        if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", [])
    ]
    assert not unexpected


def test_it_is_stored_as_refresh_stores_it(path, chapter):
    stored = nbformat.writes(normalised(chapter, path.stem)) + "\n"
    assert stored == path.read_text("utf-8"), "saved by hand; `make refresh` mends it"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("numbered", NUMBERED, ids=lambda path: path.stem)
def test_a_chapter_has_its_parts(numbered, part):
    text = "\n".join(sources(nbformat.read(numbered, as_version=4), "markdown")) + "\n"
    assert re.search(PARTS[part], text, re.MULTILINE)


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_it_shows_an_explorer(path, chapter):
    shown = [output for _, output in outputs(chapter) if WIDGET_VIEW in output.get("data", {})]
    assert shown
    if not path.stem.startswith("01"):  # Part I's have both sizes, Part II's at least a slider
        sliders = {
            model["state"]["description"]
            for model in models(chapter).values()
            if model["model_name"] in ("SelectionSliderModel", "IntSliderModel")
        }
        part_two = path.stem != "index" and int(path.stem[:2]) > 7
        assert sliders if part_two else sliders >= {"d_model", "n_heads"}


def test_every_widget_shown_is_saved_with_a_picture(chapter):
    for cell, output in outputs(chapter):
        if view := output.get("data", {}).get(WIDGET_VIEW):
            assert view["model_id"] in models(chapter), cell.id
            picture = {"image/png", "image/svg+xml"} & output.data.keys()
            assert picture, f"{cell.id} shows nothing where widgets do not run"


def test_every_control_is_tied_to_its_view(chapter):
    saved = models(chapter)
    ties = [link_ends(m) for m in saved.values() if m["model_name"].endswith("LinkModel")]
    views = {model_id: m["state"] for model_id, m in saved.items() if "frames" in m["state"]}
    controls = {k: m["state"] for k, m in saved.items() if m["model_name"] in CONTROLS}

    assert len(ties) == len(controls), "links and controls do not pair"
    assert {source for (source, _), _ in ties} == set(controls), "a control without a link"
    wanted = {
        (view, control["name"])
        for view, v in views.items()
        for control in v["controls"]
        if len(control["options"]) > 1  # one option is no choice, and is not shown
    }
    assert {target for _, target in ties} == wanted, "a trait of a view that no control moves"
    for (source, trait), (view, name) in ties:
        control = controls[source]
        assert trait == ("index" if "_options_labels" in control else "value")
        described = next(c for c in views[view]["controls"] if c["name"] == name)
        assert described["options"] == control.get("_options_labels", ["off", "on"])
        assert views[view][name] == int(control[trait]), "the picture starts elsewhere"


def test_every_picture_is_told_in_words(chapter):
    for cell, output in outputs(chapter):
        if "image/png" in output.get("data", {}):
            metadata = output.metadata.get("image/png", {})
            assert len(metadata.get("alt", "")) >= 20, cell.id
            assert metadata.get("values"), f"{cell.id}: a picture without the numbers it shows"
        if "image/svg+xml" in output.get("data", {}):
            metadata = output.metadata.get("image/svg+xml", {})
            assert len(metadata.get("alt", "")) >= 20, cell.id
            assert metadata.get("narrow"), f"{cell.id}: a drawing that a phone cannot show"
            drawn = output.data["image/svg+xml"] + metadata["narrow"]
            digits = re.findall(r" d=\S*?(\d+\.\d{5,})", drawn)
            assert not digits, f"{cell.id}: another processor draws other digits: {digits[:3]}"
    for text in sources(chapter, "markdown"):
        assert not re.search(r"!\[\s*\]\(|<img(?![^>]*\balt=)", text), text


def test_no_output_is_left_uncompared(chapter):
    """A cell prints what every run repeats; the digits of one run stand in the text."""
    for cell in chapter.cells:
        assert not UNCOMPARED.findall(cell.source), cell.id
        assert not [t for t in cell.metadata.get("tags", []) if t.startswith("nbval")], cell.id


def test_nothing_is_loaded_from_elsewhere(chapter):
    for text in sources(chapter, "markdown"):
        assert not LOADED_FROM_ELSEWHERE.search(text), text
    for text in sources(chapter, "code"):
        assert not re.search(r"https?://", text), text
    for cell, output in outputs(chapter):
        assert not LOADED_FROM_ELSEWHERE.search(output.get("data", {}).get("text/html", "")), (
            cell.id
        )


def test_no_source_names_a_place_on_one_machine(chapter):
    for cell in chapter.cells:
        assert not OF_THIS_MACHINE.search(cell.source), cell.source


def test_the_prose_has_no_word_that_talks_down(chapter):
    found = [
        text[max(word.start() - 40, 0) : word.end() + 40]
        for text in map(prose, sources(chapter, "markdown"))
        for word in BANNED.finditer(text)
    ]
    assert not found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_text_keeps_to_the_same_rules(page):
    text = page.read_text("utf-8")
    assert not BANNED.findall(prose(text))
    assert not LOADED_FROM_ELSEWHERE.search(text)
