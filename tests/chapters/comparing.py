"""Two runs of a notebook, compared by the numbers in their widgets and behind their pictures."""

import base64
import math

import numpy as np
from nbformat import NotebookNode

from tools.widget_state import WIDGET_STATE, WIDGET_VIEW

# One float32 rounds at 6e-8 of its size; the numbers shown are about 1, after a hundred additions.
TOLERANCE = 1e-5
# Stored pictures keep four digits, so the last one may fall either way.
PICTURE_TOLERANCE = 1.5e-4
# Traits that ipywidgets 7.7 and 8 do not share, and the versions of packages.
OF_A_VERSION = {
    "_model_module_version",
    "_view_module_version",
    "behavior",
    "description_allow_html",
    "description_tooltip",
    "tabbable",
    "tooltip",
}


def differences(stored: NotebookNode, fresh: NotebookNode) -> list[str]:
    """Where two runs of a notebook differ, in explorers and pictures, a line for each place.

    The runs may be of two versions of ipywidgets.
    """
    return [
        *compare(outputs(stored), outputs(fresh), "explorer", TOLERANCE),
        *compare(models(stored), models(fresh), "widget", TOLERANCE),
        *compare(pictures(stored), pictures(fresh), "picture", PICTURE_TOLERANCE),
    ]


def outputs(notebook: NotebookNode) -> dict:
    """What every cell with an explorer gives: the view, the picture, the line of text."""
    return {
        f"{cell.id}, output {position}": {
            kind: "a picture" if kind == "image/png" else value
            for kind, value in output.data.items()
        }
        for cell in notebook.cells
        for position, output in enumerate(cell.get("outputs", []))
        if WIDGET_VIEW in output.get("data", {})
    }


def models(notebook: NotebookNode) -> dict:
    """The widgets without what tells ipywidgets 7 from 8, and one anywidget from another."""
    return {
        name: {
            "state": {k: v for k, v in model["state"].items() if k not in OF_A_VERSION},
            "buffers": model["buffers"],
        }
        for name, model in widgets(notebook).items()
        if not name.partition(" ")[0].endswith("StyleModel")
    }


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
