"""What would keep a notebook from being graded is put right, cell by cell, and said in words."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from assignments.course import grade_id
from assignments.intake.notebooks import recognise, seed_of
from assignments.repair import repair
from tests.assignments.conftest import NAMES, SEED

NAME = NAMES[0]


def names_in(notebook):
    return [grade_id(cell) for cell in notebook.cells if grade_id(cell)]


@pytest.mark.parametrize("name", NAMES)
def test_an_untouched_notebook_is_recognised_and_left(handed_in, releases, name):
    notebook = handed_in(name)
    assert recognise(notebook, releases) == name
    assert seed_of(notebook) == SEED
    assert repair(notebook, releases[name]) == []
    sources = [cell.source for cell in notebook.cells]
    assert sources == [cell.source for cell in releases[name].cells]


@pytest.mark.parametrize("name", NAMES)
def test_metadata_that_a_program_dropped(handed_in, releases, name):
    notebook = handed_in(name)
    for cell in notebook.cells:
        cell.metadata.clear()
    assert recognise(notebook, releases) == name
    remarks = repair(notebook, releases[name])
    assert not [remark for remark in remarks if "`test-" in remark]
    tests = [n for n in names_in(releases[name]) if n.startswith("test-")]
    assert [n for n in names_in(notebook) if n.startswith("test-")] == tests


@pytest.mark.parametrize("index", range(5))
def test_a_missing_test_comes_back_to_its_place(handed_in, releases, index):
    release = releases[NAME]
    missing = [name for name in names_in(release) if name.startswith("test-")][index]
    notebook = handed_in()
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) != missing]
    assert repair(notebook, release) == [f"`{missing}` was missing, and was put back"]
    assert names_in(notebook) == names_in(release)


def test_an_answer_that_moved_to_another_cell(handed_in, releases):
    """The test stands behind it again, and no stub hides it."""
    notebook = handed_in()
    solution, test = names_in(releases[NAME])[1:3]
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) not in (solution, test)]
    notebook.cells.insert(4, new_code_cell("mine = 1"))
    assert repair(notebook, releases[NAME]) == [
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
    remarks = repair(notebook, releases[NAME])
    assert remarks == [
        f"it has CLASS_SEED = 1999, and was graded with the class's {SEED}",
        f"`{test}` was no longer a cell of code",
        f"there is more than one `{solution}`, and the last one counts",
    ]
    repaired = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    for cell in releases[NAME].cells:
        if grade_id(cell):
            assert repaired[grade_id(cell)].metadata.nbgrader == cell.metadata.nbgrader
            assert repaired[grade_id(cell)].cell_type == cell.cell_type


def test_a_seed_of_5000_digits_is_said_in_a_few(handed_in, releases):
    notebook = handed_in()
    for cell in notebook.cells:
        cell.source = cell.source.replace(f"CLASS_SEED = {SEED}", f"CLASS_SEED = {'7' * 5000}")
    (remark,) = repair(notebook, releases[NAME])
    assert remark == f"it has CLASS_SEED = {'7' * 20}…, and was graded with the class's {SEED}"
