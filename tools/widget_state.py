"""The widgets that a notebook holds: which ones its cells show, and what each one refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
LINKS = ("LinkModel", "DirectionalLinkModel")
REFERENCE = "IPY_MODEL_"  # stands before the id of a model that another one's state refers to


def views(notebook: NotebookNode) -> Iterator[str]:
    """Ids of the models that the cells display, in the order of the page."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if view := output.get("data", {}).get(WIDGET_VIEW):
                yield view["model_id"]


def reached(models: dict, model_ids: Iterable[str]) -> Iterator[str]:
    """The given models, each followed by all that it refers to."""
    for model_id in model_ids:
        yield model_id
        yield from reached(models, references(models[model_id]["state"]))


def references(value) -> Iterator[str]:
    """Ids of the models that a widget's state refers to, as far down as it goes."""
    if isinstance(value, str) and value.startswith(REFERENCE):
        yield value.removeprefix(REFERENCE)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from references(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def link_ends(link: dict) -> list[tuple[str, str]]:
    """Source and target of a link: the id of a model and the name of its trait."""
    ends = (link["state"]["source"], link["state"]["target"])
    return [(model.removeprefix(REFERENCE), trait) for model, trait in ends]
