"""What an explorer shows on the page is what torch computes today.

nbval compares a chapter's text and passes over its widgets. Here every explorer that stands by
itself in its cell is made again. Those that draw a chapter's own tensors, in steps, are compared
with all the others where a chapter runs as a whole: `tests/clients/test_colab.py`.
"""

import json

import numpy as np
import pytest

from tests.chapters.comparing import TOLERANCE, compare, unpacked
from tests.site.conftest import explorer_cells, stored_views

CELLS = explorer_cells()
ALONE = [each for each in CELLS if "steps_explorer" not in each[2]]


@pytest.mark.slow
@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("stem", "nth", "source"), ALONE, ids=[f"{stem}-{nth}" for stem, nth, _ in ALONE]
)
def test_a_stored_explorer_shows_what_torch_computes(stem, nth, source):
    imports, call = source.strip().rsplit("\n", 1)
    names = {}
    exec(imports, names)
    stored, fresh = (frames(view) for view in (stored_views(stem)[nth], eval(call, names).view))
    assert not compare(stored, fresh, "frame", TOLERANCE)


def frames(view):
    """As they travel, where a tuple becomes a list, with their tensors."""
    return unpacked(json.loads(json.dumps(view.frames)), np.frombuffer(view.numbers, "<f4"))


def test_most_explorers_stand_by_themselves():
    assert len(ALONE) > 20 and len(CELLS) - len(ALONE) < 8
