"""What was handed in is read, recognised and put right, or it is said in words why it cannot be."""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from assignments.course import grade_id
from assignments.mend import mend, read, recognise, seed_of
from tests.assignments.conftest import NAMES, SEED

NAME = NAMES[0]


@pytest.fixture(scope="module")
def releases(released):
    return {name: nbformat.read(released / f"{name}.ipynb", as_version=4) for name in NAMES}


@pytest.fixture
def handed_in(releases):
    """A released notebook as it comes back."""
    return lambda name=NAME: read(nbformat.writes(releases[name]).encode())


def names_in(notebook):
    return [grade_id(cell) for cell in notebook.cells if grade_id(cell)]


@pytest.mark.parametrize("name", NAMES)
def test_an_untouched_notebook_is_recognised_and_left(handed_in, releases, name):
    notebook = handed_in(name)
    assert recognise(notebook, releases) == name
    assert seed_of(notebook) == SEED
    assert mend(notebook, releases[name]) == []
    sources = [cell.source for cell in notebook.cells]
    assert sources == [cell.source for cell in releases[name].cells]


@pytest.mark.parametrize("name", NAMES)
def test_metadata_that_a_program_dropped(handed_in, releases, name):
    notebook = handed_in(name)
    for cell in notebook.cells:
        cell.metadata.clear()
    assert recognise(notebook, releases) == name
    mend(notebook, releases[name])
    tests = [n for n in names_in(releases[name]) if n.startswith("test-")]
    assert [n for n in names_in(notebook) if n.startswith("test-")] == tests


def test_what_is_none(releases):
    foreign = new_notebook(cells=[new_code_cell("1", metadata={"nbgrader": {"grade_id": "q1"}})])
    with pytest.raises(ValueError, match="none of the assignments here: its cells are called q1"):
        recognise(foreign, releases)
    with pytest.raises(ValueError, match="not the notebook that was handed out"):
        recognise(new_notebook(cells=[new_code_cell("1")]), releases)


@pytest.mark.parametrize("place", range(5))
def test_a_missing_test_comes_back_to_its_place(handed_in, releases, place):
    release = releases[NAME]
    missing = [name for name in names_in(release) if name.startswith("test-")][place]
    notebook = handed_in()
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) != missing]
    assert mend(notebook, release) == [f"`{missing}` was missing, and was put back"]
    assert names_in(notebook) == names_in(release)


def test_an_answer_that_moved_to_another_cell(handed_in, releases):
    """The test stands behind it again, and no stub hides it."""
    notebook = handed_in()
    solution, test = names_in(releases[NAME])[1:3]
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) not in (solution, test)]
    notebook.cells.insert(4, new_code_cell("mine = 1"))
    assert mend(notebook, releases[NAME]) == [
        f"the answer `{solution}` is missing",
        f"`{test}` was missing, and was put back",
    ]
    sources = [cell.source for cell in notebook.cells]
    names = [grade_id(cell) for cell in notebook.cells]
    assert sources.index("mine = 1") < names.index(test)


def test_everything_else(handed_in, releases):
    notebook = handed_in()
    cells = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    solution, test = names_in(notebook)[1:3]
    cells[test].metadata.nbgrader = {"grade_id": test, "grade": False, "points": "many"}
    cells[test].cell_type = "markdown"
    cells["class-seed"].source = cells["class-seed"].source.replace(str(SEED), "1999")
    notebook.cells.append(nbformat.from_dict(cells[solution]))
    remarks = mend(notebook, releases[NAME])
    assert remarks == [
        f"it has CLASS_SEED = 1999, and was graded with the class's {SEED}",
        f"`{test}` was no longer a cell of code",
        f"there is more than one `{solution}`, and the last one counts",
    ]
    mended = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    for cell in releases[NAME].cells:
        if grade_id(cell):
            assert mended[grade_id(cell)].metadata.nbgrader == cell.metadata.nbgrader
            assert mended[grade_id(cell)].cell_type == cell.cell_type


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"%PDF-1.7", "this is a PDF"),
        (b"\x89PNG\r\n\x1a\n\0", "it is not text"),
        (b"print(1)", "it is not the file that Jupyter saves"),
        (b'{"cells": [', "it breaks off or is damaged in line 1"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[]", "it has no cells"),
        (b'{"a": 1}', "it has no cells"),
        (b'{"cells": 3, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "does not parse"),
        (b'{"cells": [{"cell_type": "code"}], "nbformat": 4}', "does not parse"),
    ],
)
def test_what_cannot_be_read(data, told):
    with pytest.raises(ValueError) as raised:
        read(data)
    assert told in str(raised.value)


def test_odd_metadata_is_read(handed_in, releases):
    raw = json.loads(nbformat.writes(releases[NAME]))
    raw["metadata"] = {"widgets": {"x": 1}, "kernelspec": {"name": "julia-1.9"}}
    raw["cells"][0]["metadata"]["nbgrader"] = "no"
    raw["cells"][1]["metadata"]["nbgrader"] = {"grade_id": ["a"]}
    raw["cells"][2]["metadata"]["nbgrader"]["points"] = None
    del raw["cells"][3]["id"]
    raw["cells"][4]["id"] = raw["cells"][5]["id"]
    notebook = read(b"\xef\xbb\xbf" + json.dumps(raw).encode())
    assert notebook.metadata.kernelspec.name == "python3" and "widgets" not in notebook.metadata
    assert recognise(notebook, releases) == NAME
    mend(notebook, releases[NAME])
    nbformat.validate(notebook)
