"""Makes a student's notebook: a released one with answers written into it."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

from nbformat import NotebookNode

from assignments.course import grade_id


@dataclass(frozen=True)
class Mistake:
    """A wrong answer.

    name: the mistake, in a few words.
    cell: the grade_id of the solution cell that it replaces; the others keep the reference.
    code: the whole source of that cell.
    says: a piece of the text that the learner's feedback must hold.
    """

    name: str
    cell: str
    code: str
    says: str


@dataclass(frozen=True)
class Right:
    """A right answer that is written in another way than the reference."""

    name: str
    cell: str
    code: str


def reference_answers(source: NotebookNode) -> dict[str, str]:
    """The solution cells of a source notebook, by their grade_id."""
    return {
        grade_id(cell): cell.source
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }


def submission(released: NotebookNode, answers: Mapping[str, str]) -> NotebookNode:
    """A copy of the released notebook with these sources in the cells with these grade_ids."""
    notebook = copy.deepcopy(released)
    cells = {grade_id(cell): cell for cell in notebook.cells}
    for name, source in answers.items():
        cells[name].source = source
    return notebook
