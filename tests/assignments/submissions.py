"""Answers to the assignments, and students' notebooks made of them."""

import copy
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from assignments.course import SOURCE, grade_id

ANSWERS = Path(__file__).with_name("answers")


class Answer(NamedTuple):
    """What a student writes into one solution cell; the other cells keep the reference.

    name: in a few words.
    cell: the grade_id of the cell.
    code: its whole source.
    says: a piece of the text that the feedback on a mistake must hold, empty for a right answer.
    """

    name: str
    cell: str
    code: str
    says: str = ""


def source(name: str) -> NotebookNode:
    return nbformat.read(SOURCE / name / f"{name}.ipynb", as_version=4)


def reference_answers(source: NotebookNode) -> dict[str, str]:
    """The solution cells of a source notebook, by their grade_id."""
    return {
        grade_id(cell): cell.source
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }


def bank(name: str) -> tuple[list[Answer], list[Answer]]:
    """The mistakes and the other right answers of `answers/NAME.py`.

    A row there is the name of an answer, what it changes, and of a mistake what the feedback says.
    `{old: new, ...}` are pieces that stand once in one solution alone, `{cell: code}` a whole one.
    What OTHER has of a cell, a right answer too, takes the place of its solution.
    """
    spec = importlib.util.spec_from_file_location("answers", ANSWERS / f"{name}.py")
    rows = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rows)
    other = getattr(rows, "OTHER", {})
    solutions = reference_answers(source(name)) | other
    rights = [Answer("another way", cell, code) for cell, code in other.items()]
    mistakes = [answer(solutions, *row) for row in rows.MISTAKES]
    return mistakes, rights + [answer(solutions, *row) for row in rows.RIGHT]


def answer(
    solutions: Mapping[str, str], name: str, changes: dict[str, str], says: str = ""
) -> Answer:
    """Raises ValueError where the changes fit no solution, or several."""
    if changes.keys() <= solutions.keys():
        [(cell, code)] = changes.items()
        return Answer(name, cell, code, says)
    fitting = [
        cell for cell, code in solutions.items() if all(code.count(old) == 1 for old in changes)
    ]
    if len(fitting) != 1:
        raise ValueError(f"{name!r}: {list(changes)} stand once each in {fitting or 'no solution'}")
    code = solutions[fitting[0]]
    for old, new in changes.items():
        code = code.replace(old, new)
    return Answer(name, fitting[0], code, says)


def submission(released: NotebookNode, answers: Mapping[str, str]) -> NotebookNode:
    """A copy of the released notebook with these sources in the cells with these grade_ids."""
    notebook = copy.deepcopy(released)
    cells = {grade_id(cell): cell for cell in notebook.cells}
    for name, source in answers.items():
        cells[name].source = source
    return notebook
