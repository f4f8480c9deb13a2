"""Put right what would keep a notebook that was handed in from being graded."""

import re

import nbformat
from nbformat import NotebookNode

from assignments.course import SEED, SEED_CELL, grade_id, named_cells
from assignments.intake.notebooks import NEW_CELL


def repair(notebook: NotebookNode, release: NotebookNode) -> list[str]:
    """Make nbgrader's cells those of the release again. Returns what had to be done, in words.

    The notebook is changed. Locked cells that differ are nbgrader's to put back, with their hidden
    tests; it can neither tell cells of one name apart nor find the place of a missing one.
    """
    known, remarks = named_cells(release), []
    last = {grade_id(cell): index for index, cell in enumerate(notebook.cells)}
    twice = []
    for index, cell in enumerate(notebook.cells):
        name = grade_id(cell)
        if name is None:
            continue
        if name not in known or last[name] != index:
            if name in known and name not in twice:
                twice.append(name)
            del cell.metadata["nbgrader"]
            continue
        original = known[name]
        if is_locked(original) and cell.source.strip() != original.source.strip():
            remarks.append(change(name, cell, original))
        cell.metadata.nbgrader = original.metadata.nbgrader.copy()
        if cell.cell_type != original.cell_type:
            remarks.append(f"`{name}` was no longer a cell of {original.cell_type}")
            notebook.cells[index] = NEW_CELL[original.cell_type](
                cell.source, id=cell.id, metadata=cell.metadata
            )
    remarks += [f"there is more than one `{name}`, and the last one counts" for name in twice]
    for name in [name for name in known if name not in last]:
        remarks.append(put_back(notebook, known, name))
    return remarks


def is_locked(cell: NotebookNode) -> bool:
    return bool(cell.metadata.nbgrader.get("locked") and not cell.metadata.nbgrader.get("solution"))


def change(name: str, cell: NotebookNode, original: NotebookNode) -> str:
    seeds = SEED.search(cell.source), SEED.search(original.source)
    if name == SEED_CELL and all(seeds) and seeds[0][1] != seeds[1][1]:
        theirs = re.sub(r"(\d{20})\d+", r"\1…", seeds[0][1])  # it may have thousands of digits
        return f"it has CLASS_SEED = {theirs}, and was graded with the class's {seeds[1][1]}"
    return f"`{name}` had been changed, and was put back"


def put_back(notebook: NotebookNode, known: dict[str, NotebookNode], name: str) -> str:
    """Put a missing cell after the one that it follows, else before the next, else at the end."""
    if known[name].metadata.nbgrader.get("solution") and not known[name].metadata.nbgrader.grade:
        return f"the answer `{name}` is missing"
    names = list(known)
    indices = {grade_id(cell): index for index, cell in enumerate(notebook.cells)}
    before = names[names.index(name) - 1] if names.index(name) else None
    after = [indices[n] for n in names[names.index(name) :] if n in indices]
    if before in indices:
        index = indices[before] + 1
    else:
        index = min(after, default=len(notebook.cells))
    cell = nbformat.from_dict(known[name])
    cell.id = f"put-back-{name}"[:64]
    notebook.cells.insert(index, cell)
    return f"`{name}` was missing, and was put back"
