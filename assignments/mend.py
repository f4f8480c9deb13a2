"""Read a notebook that was handed in, and put right what would keep it from being graded."""

import json

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from assignments.course import SEED, SEED_CELL, grade_id

NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


def read(data: bytes) -> NotebookNode:
    """The notebook, with its cells' sources, nbgrader's metadata and pictures, and no more.

    Raises:
        ValueError: why it is none, in words.
    """
    if not data.strip():
        raise ValueError("the file is empty")
    if data.startswith(b"%PDF"):
        raise ValueError("this is a PDF, not a notebook")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("this is not a notebook: it is not text") from None
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        told = f"it breaks off or is damaged in line {error.lineno} ({error.msg})"
        if not text.lstrip().startswith("{"):
            told = "it is not the file that Jupyter saves"
        raise ValueError(f"this does not parse as a notebook: {told}") from None
    except RecursionError:
        raise ValueError("this does not parse as a notebook: it is nested too deeply") from None
    if not isinstance(raw, dict) or not ("cells" in raw or "worksheets" in raw):
        raise ValueError("this is not a notebook: it has no cells")
    try:
        notebook = nbformat.reads(text, as_version=4)
        cells = [clean(cell, place) for place, cell in enumerate(notebook.cells, start=1)]
    except Exception as error:  # nbformat takes for granted what a hand-edited file may lack
        raise ValueError(
            f"this does not parse as a notebook: {type(error).__name__}, {error}"
        ) from None
    return new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )


def clean(cell: NotebookNode, place: int) -> NotebookNode:
    source = cell.source if isinstance(cell.source, str) else "".join(cell.source)
    made = NEW_CELL[cell.cell_type](source, id=f"cell-{place}")
    if name := grade_id(cell):
        made.metadata.nbgrader = {"grade_id": name}
    if "attachments" in cell:
        made.attachments = cell.attachments
    return made


def recognise(notebook: NotebookNode, releases: dict[str, NotebookNode]) -> str:
    """The assignment of a notebook, by nbgrader's names of its cells and the text of its tests.

    A cell that has lost its metadata and still holds the text of a locked cell gets its name back.

    Raises:
        ValueError: it is none of these.
    """
    texts = {
        cell.source.strip(): (name, grade_id(cell))
        for name, release in releases.items()
        for cell in release.cells
        if is_test(cell)
    }
    by_text = [
        texts[cell.source.strip()] for cell in notebook.cells if cell.source.strip() in texts
    ]
    names = {grade_id(cell) for cell in notebook.cells} - {None, SEED_CELL}
    score = {
        name: len(names & known_cells(release).keys())
        + sum(theirs == name for theirs, _ in by_text)
        for name, release in releases.items()
    }
    best = max(score, key=score.get)
    if not score[best]:
        raise ValueError(
            f"this is none of the assignments here: its cells are called {', '.join(sorted(names))}"
            if names
            else "this is not the notebook that was handed out, or it was saved by a program that "
            "drops what nbgrader knows of the cells"
        )
    for cell in notebook.cells:
        name, test = texts.get(cell.source.strip(), ("", ""))
        if name == best and grade_id(cell) is None:
            cell.metadata.nbgrader = {"grade_id": test}
    return best


def is_test(cell: NotebookNode) -> bool:
    about = cell.metadata.get("nbgrader", {})
    return bool(about.get("grade") and about.get("locked"))


def known_cells(release: NotebookNode) -> dict[str, NotebookNode]:
    return {grade_id(cell): cell for cell in release.cells if grade_id(cell)}


def seed_of(notebook: NotebookNode) -> int | None:
    """The class's seed that a notebook was handed out with."""
    for cell in notebook.cells:
        if grade_id(cell) == SEED_CELL and (found := SEED.search(cell.source)):
            return int(found[1])
    return None


def mend(notebook: NotebookNode, release: NotebookNode) -> list[str]:
    """Make nbgrader's cells those of the release again. Returns what had to be done, in words.

    The notebook is changed. Locked cells that differ are nbgrader's to put back, with their hidden
    tests; it can neither tell cells of one name apart nor find the place of a missing one.
    """
    known, remarks = known_cells(release), []
    last = {grade_id(cell): place for place, cell in enumerate(notebook.cells)}
    twice = []
    for place, cell in enumerate(notebook.cells):
        name = grade_id(cell)
        if name is None:
            continue
        if name not in known or last[name] != place:
            if name in known and name not in twice:
                twice.append(name)
            del cell.metadata["nbgrader"]
            continue
        original = known[name]
        if is_locked(original) and cell.source.strip() != original.source.strip():
            remarks.append(changed(name, cell, original))
        cell.metadata.nbgrader = original.metadata.nbgrader.copy()
        if cell.cell_type != original.cell_type:
            remarks.append(f"`{name}` was no longer a cell of {original.cell_type}")
            notebook.cells[place] = NEW_CELL[original.cell_type](
                cell.source, id=cell.id, metadata=cell.metadata
            )
    remarks += [f"there is more than one `{name}`, and the last one counts" for name in twice]
    for name in [name for name in known if name not in last]:
        remarks.append(put_back(notebook, known, name))
    return remarks


def is_locked(cell: NotebookNode) -> bool:
    return bool(cell.metadata.nbgrader.get("locked") and not cell.metadata.nbgrader.get("solution"))


def changed(name: str, cell: NotebookNode, original: NotebookNode) -> str:
    seeds = SEED.search(cell.source), SEED.search(original.source)
    if name == SEED_CELL and all(seeds) and seeds[0][1] != seeds[1][1]:
        return f"it has CLASS_SEED = {seeds[0][1]}, and was graded with the class's {seeds[1][1]}"
    return f"`{name}` had been changed, and was put back"


def put_back(notebook: NotebookNode, known: dict[str, NotebookNode], name: str) -> str:
    """Put a missing cell after the one that it follows, else before the next, else at the end."""
    if known[name].metadata.nbgrader.get("solution") and not known[name].metadata.nbgrader.grade:
        return f"the answer `{name}` is missing"
    names = list(known)
    places = {grade_id(cell): place for place, cell in enumerate(notebook.cells)}
    before = names[names.index(name) - 1] if names.index(name) else None
    after = [places[n] for n in names[names.index(name) :] if n in places]
    if before in places:
        place = places[before] + 1
    else:
        place = min(after, default=len(notebook.cells))
    cell = nbformat.from_dict(known[name])
    cell.id = f"put-back-{name}"[:64]
    notebook.cells.insert(place, cell)
    return f"`{name}` was missing, and was put back"
