"""The form of a chapter: every picture has a caption, and no open code gives a picture away."""

import nbformat
import pytest

from tools.refresh import chapters
from tools.widget_state import WIDGET_VIEW

CHAPTERS = chapters()[1:]
FOLDED = {"remove-input", "hide-input", "remove-cell", "hide-cell"}


def tags(cell):
    return set(cell.metadata.get("tags", ()))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_picture_has_a_caption_of_full_sentences(chapter):
    cells = nbformat.read(chapter, 4).cells
    shown = set()  # a widget that is shown again has its caption where it came first
    captions = []
    for cell, below in zip(cells, [*cells[1:], None], strict=True):
        data = [output.get("data", {}) for output in cell.get("outputs", ())]
        views = [each[WIDGET_VIEW]["model_id"] for each in data if WIDGET_VIEW in each]
        pictures = [each for each in data if any(kind.startswith("image/") for kind in each)]
        if not pictures or "hide-cell" in tags(cell) or shown & set(views):
            continue
        shown |= set(views)
        assert below is not None and "caption" in tags(below), cell.source
        captions.append(below.source)
    assert captions
    for caption in captions:
        assert caption.endswith((".", "?")) and "\n" not in caption
        assert 8 <= len(caption.split()) <= 45, caption


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_open_code_neither_tells_what_a_picture_shows_nor_is_one_call(chapter):
    for cell in nbformat.read(chapter, 4).cells:
        if cell.cell_type == "code" and not tags(cell) & FOLDED:
            assert "alt=" not in cell.source
            assert not any(WIDGET_VIEW in o.get("data", {}) for o in cell.outputs), cell.source
