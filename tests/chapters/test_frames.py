"""What an explorer shows on the page is what torch computes today.

nbval compares a chapter's text and passes over its widgets. Here every explorer that stands by
itself in its cell is made again. Those that draw a chapter's own tensors, in steps, are compared
with all the others where a chapter runs as a whole: `tests/clients/test_colab.py`.
"""

import json

import nbformat
import numpy as np
import pytest

from tests.chapters.comparing import TOLERANCE, compare, unpacked, widgets
from tools.refresh import chapters
from tools.widget_state import WIDGET_STATE, WIDGET_VIEW, reached

CELLS = [
    (path, cell.id, cell.source)
    for path in chapters()
    for cell in nbformat.read(path, as_version=4).cells
    if any(WIDGET_VIEW in output.get("data", {}) for output in cell.get("outputs", []))
]
ALONE = [each for each in CELLS if "steps_explorer" not in each[2]]


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("path", "cell_id", "source"), ALONE, ids=[f"{p.stem}-{c}" for p, c, _ in ALONE]
)
def test_a_stored_explorer_shows_what_torch_computes(path, cell_id, source):
    imports, call = source.strip().rsplit("\n", 1)
    names = {}
    exec(imports, names)
    view = eval(call, names).view
    frames = json.loads(json.dumps(view.frames))  # as they travel: a tuple becomes a list
    fresh = unpacked(frames, np.frombuffer(view.numbers, "<f4"))
    assert not compare(stored_frames(path, cell_id), fresh, "frame", TOLERANCE)


def stored_frames(path, cell_id):
    notebook = nbformat.read(path, as_version=4)
    [cell] = [cell for cell in notebook.cells if cell.id == cell_id]
    shown = [
        output.data[WIDGET_VIEW]["model_id"]
        for output in cell.outputs
        if WIDGET_VIEW in output.data
    ]
    models = notebook.metadata.widgets[WIDGET_STATE].state
    held = set(reached(models, shown))
    [frames] = [
        model["state"]["frames"]
        for name, model in widgets(notebook).items()
        if name.split()[-1] in held and "frames" in model["state"]
    ]
    return frames


def test_most_explorers_stand_by_themselves():
    assert len(ALONE) > 20 and len(CELLS) - len(ALONE) < 8
