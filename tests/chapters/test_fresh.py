"""What a chapter stores is what a fresh run gives: the widgets' frames and links, the pictures.

nbval compares the text. It looks neither at widgets nor at pictures, so a slider that lost its
picture, or a figure of an older formula, would stay on the page unseen. Here every chapter is run
once more; pictures are compared by the numbers they were drawn from, never by pixels.
"""

import base64
import copy
import math

import nbformat
import numpy as np
import pytest

from tools.refresh import WIDGET_STATE, chapters

# One float32 rounds at 6e-8 of its size; the numbers shown are about 1, after a hundred additions.
TOLERANCE = 1e-5
# Stored pictures keep four digits, so the last one may fall either way.
PICTURE_TOLERANCE = 1.5e-4


def test_a_stored_chapter_is_what_a_run_gives(run):
    stored = nbformat.read(run.path, as_version=4)
    found = differences(stored, run.notebook)
    assert not found, "\n".join(
        [
            f"{run.path.name} is stale; `make refresh` renews it:",
            *found[:20],
            f"{len(found)} in all",
        ]
    )


def differences(stored, fresh) -> list[str]:
    """Where two runs of a notebook differ, in widgets and pictures, a line for each place."""
    return [
        *compare(widgets(stored), widgets(fresh), "widget", TOLERANCE),
        *compare(pictures(stored), pictures(fresh), "picture", PICTURE_TOLERANCE),
    ]


def widgets(notebook) -> dict:
    """The saved models by id, each tensor of a frame as numbers in the place that named it."""
    state = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    models = {}
    for model_id, model in state.items():
        buffers = {tuple(b["path"]): base64.b64decode(b["data"]) for b in model.get("buffers", [])}
        values = dict(model["state"])
        if "frames" in values:
            # Equal tensors share a place, and what is equal to the last bit can depend on the
            # machine: so places and buffer are not compared, but the tensors they stand for.
            numbers = np.frombuffer(buffers.pop(("numbers",)), "<f4")
            values["frames"] = unpacked(values["frames"], numbers)
        models[f"{model['model_name']} {model_id}"] = {"state": values, "buffers": buffers}
    return models


def unpacked(value, numbers):
    """A frame with the tensors in it: `{"at": 6, "shape": [2, 3]}` names six of the numbers."""
    if isinstance(value, dict) and value.keys() == {"at", "shape"}:
        size = math.prod(value["shape"])
        flat = numbers[value["at"] : value["at"] + size]
        # A frame that points past the end is a difference, not a crash.
        return flat.reshape(value["shape"]) if flat.size == size else f"no {size} numbers"
    if isinstance(value, dict):
        return {key: unpacked(item, numbers) for key, item in value.items()}
    if isinstance(value, list):
        return [unpacked(item, numbers) for item in value]
    return value


def pictures(notebook) -> dict:
    """What every picture was drawn from and how it is told in words, by cell and output."""
    return {
        f"{cell.id}, output {position}": output.metadata.get("image/png", {})
        for cell in notebook.cells
        for position, output in enumerate(cell.get("outputs", []))
        if "image/png" in output.get("data", {})
    }


def compare(stored, fresh, where: str, tolerance: float) -> list[str]:
    """Differences between two trees; only floats and arrays may differ, by the tolerance."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        lost = [f"{where}: {key} is stored only" for key in stored.keys() - fresh.keys()]
        new = [f"{where}: {key} is in the fresh run only" for key in fresh.keys() - stored.keys()]
        both = [key for key in stored if key in fresh]
        return sorted(lost + new) + [
            line
            for key in both
            for line in compare(stored[key], fresh[key], f"{where} {key}", tolerance)
        ]
    if isinstance(stored, list) and isinstance(fresh, list) and len(stored) == len(fresh):
        return [
            line
            for i, (a, b) in enumerate(zip(stored, fresh, strict=True))
            for line in compare(a, b, f"{where}[{i}]", tolerance)
        ]
    if isinstance(stored, np.ndarray) and isinstance(fresh, np.ndarray):
        if stored.shape == fresh.shape:
            close = np.isclose(stored, fresh, rtol=tolerance, atol=tolerance, equal_nan=True)
            places = np.argwhere(~close).tolist()
            return [f"{where}{at}: {stored[*at]}, fresh {fresh[*at]}" for at in places]
        same = False
    elif isinstance(stored, float) and isinstance(fresh, float):
        same = np.isclose(stored, fresh, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        same = type(stored) is type(fresh) and stored == fresh
    if same:
        return []
    if isinstance(stored, str) and isinstance(fresh, str):
        pairs = enumerate(zip(stored, fresh, strict=False))
        start = next((i for i, (a, b) in pairs if a != b), min(len(stored), len(fresh)))
        stored, fresh = stored[start:], fresh[start:]
        where += f", from character {start}"
    return [f"{where}: stored {stored!r:.120}, fresh {fresh!r:.120}"]


# What follows breaks a stored chapter in one place and asks that the comparison says so.


def a_number_of_a_frame(notebook):
    buffer = next(m for m in models(notebook) if "buffers" in m)["buffers"][0]
    numbers = np.frombuffer(base64.b64decode(buffer["data"]), "<f4").copy()
    numbers[len(numbers) // 2] += 0.01
    buffer["data"] = base64.b64encode(numbers.tobytes()).decode()


def the_place_of_a_frame(notebook):
    frames = next(m["state"]["frames"] for m in models(notebook) if "frames" in m["state"])
    tensors = [v for v in next(iter(frames.values())).values() if isinstance(v, dict) and "at" in v]
    tensors[0]["at"] += 1


def a_frame(notebook):
    frames = next(m["state"]["frames"] for m in models(notebook) if "frames" in m["state"])
    del frames[list(frames)[-1]]


def the_drawing_code(notebook):
    next(m for m in models(notebook) if "_esm" in m["state"])["state"]["_esm"] += "\n// another"


def a_link(notebook):
    state = notebook.metadata.widgets[WIDGET_STATE]["state"]
    del state[next(k for k, model in state.items() if model["model_name"] == "LinkModel")]


def the_target_of_a_link(notebook):
    next(m for m in models(notebook) if m["model_name"] == "LinkModel")["state"]["target"][1] = "x"


def an_option_of_a_slider(notebook):
    slider = next(m for m in models(notebook) if m["model_name"] == "SelectionSliderModel")
    slider["state"]["_options_labels"][0] = "5"


def the_words_of_a_picture(notebook):
    next(iter(pictures(notebook).values()))["alt"] += "."


def a_number_of_a_picture(notebook):
    values = next(iter(pictures(notebook).values()))["values"]
    row = values[next(iter(values))][0]
    row[0] += 0.01


def models(notebook):
    return notebook.metadata.widgets[WIDGET_STATE]["state"].values()


@pytest.fixture(scope="module")
def chapter_3():
    return nbformat.read(chapters()[0].parent / "03-splitting-heads.ipynb", as_version=4)


def test_a_chapter_does_not_differ_from_itself(chapter_3):
    assert differences(chapter_3, copy.deepcopy(chapter_3)) == []


@pytest.mark.parametrize(
    "change",
    [
        a_number_of_a_frame,
        the_place_of_a_frame,
        a_frame,
        the_drawing_code,
        a_link,
        the_target_of_a_link,
        an_option_of_a_slider,
        the_words_of_a_picture,
        a_number_of_a_picture,
    ],
)
def test_a_change_is_found(chapter_3, change):
    changed = copy.deepcopy(chapter_3)
    change(changed)
    assert differences(changed, chapter_3)
