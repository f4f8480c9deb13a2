"""Widgets that work on the published page, without a kernel.

myst-nb shows a widget by loading Jupyter's whole widget manager from another host. This extension
writes the saved state of a page's widgets beside the page instead, and `host.js` beside this file
brings them to life. What reaches the page is checked when the book is built: a view without saved
state, a type that the host does not know, or a widget without a static picture stops the build and
names the notebook and the cell.
"""

from __future__ import annotations

import json
import re
import zlib
from html import escape
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from book._ext.notebook_outputs import Output, notebook_outputs, part, read_notebook
from book._ext.own_files import add_own_files
from tools.widget_state import LINKS, WIDGET_STATE, WIDGET_VIEW, references

# What host.js needs of every type it knows. An anywidget's own traits all travel.
CONTROL = ("description", "disabled", "tooltip")
TRAITS = {
    "SelectionSliderModel": (*CONTROL, "_options_labels", "index", "continuous_update", "readout"),
    "DropdownModel": (*CONTROL, "_options_labels", "index"),
    "CheckboxModel": (*CONTROL, "value"),
    "BoxModel": ("children",),
    "VBoxModel": ("children",),
    "LinkModel": ("source", "target"),
}
# The empty line after a module of an explorer's text, in which each module is a function that is
# called at once. What views share, which is most of them, the page then has once.
BETWEEN = re.compile(r"(?<=^\}\)\(\);\n)\n", re.MULTILINE)
AGAIN = "Here the page shows its first picture once more."
APPEARANCE = ("layout", "style")  # the book's stylesheet decides how a control looks


class static_widget(nodes.General, nodes.Element):
    """One widget: `root`, `models` and `title` are what host.js reads; the child is the picture for
    pages without JavaScript. `again` is set where the page has shown the same widget before.
    """


def replace_widgets(app: Sphinx, doctree: nodes.document) -> None:
    notebook = read_notebook(app)
    if notebook is None:
        return
    saved = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    sources: list[str] = []
    shown: set[str] = set()
    for output in notebook_outputs(app, notebook, doctree):
        if WIDGET_VIEW not in output.stored.data:
            continue
        model_id = output.stored.data[WIDGET_VIEW]["model_id"]
        models = reachable_models(model_id, saved, output.place)
        slimmed = {key: slim(saved[key], sources) for key in models}
        widget = widget_node(output, model_id, slimmed)
        if model_id in shown:
            widget["again"] = True
            widget.children = [nodes.paragraph("", AGAIN)]
        shown.add(model_id)
        output.bundle.replace_self(widget)
    # Modules and stylesheets of the anywidgets, each one once however many views share it.
    doctree["widget_sources"] = sources
    # myst-nb would add the notebook's whole state to the page, and its own scripts.
    NbMetadataCollector.get_doc_data(app.env)[app.env.docname].pop("js_files", None)


def widget_node(output: Output, root: str, models: dict) -> static_widget:
    picture = part(output.bundle, "image/png") or part(output.bundle, "image/svg+xml")
    if picture is None:
        raise ExtensionError(
            f"{output.place}: the widget has no static picture. Add an image/png to its output: "
            "it is shown in print and where JavaScript is off"
        )
    picture["loading"] = "lazy"  # while it is hidden, it is not fetched
    titles = (model["state"].get("title") for model in models.values())
    return static_widget(
        "", picture, root=root, models=models, title=next(filter(None, titles), "")
    )


def reachable_models(root: str, saved: dict, place: str) -> list[str]:
    """The ids of the models that a view needs: what it refers to, and the links that touch any of
    these.
    """
    found: list[str] = []
    waiting = [root]
    while waiting:
        model_id = waiting.pop()
        if model_id in found:
            continue
        if model_id not in saved:
            raise ExtensionError(
                f"{place}: the notebook holds no saved state for the widget {model_id}. "
                "Run it again and save it with its widget state"
            )
        check_type(saved[model_id], place)
        found.append(model_id)
        waiting += references(without_appearance(saved[model_id]))
        for link_id, link in saved.items():
            if link["model_name"] in LINKS and model_id in references(link["state"]):
                waiting.append(link_id)
    return [model_id for model_id in saved if model_id in found]


def without_appearance(model: dict) -> dict:
    return {trait: value for trait, value in model["state"].items() if trait not in APPEARANCE}


def check_type(model: dict, place: str) -> None:
    name, module = model["model_name"], model["model_module"]
    if name in TRAITS and module == "@jupyter-widgets/controls":
        return
    if name == "AnyModel" and module == "anywidget":
        return
    known = ", ".join(sorted(known.removesuffix("Model") for known in [*TRAITS, "AnyModel"]))
    raise ExtensionError(
        f"{place}: the static host does not know the widget type {name} ({module}). "
        f"It knows {known}"
    )


def slim(model: dict, sources: list[str]) -> dict:
    """A saved model without what the host does not read."""
    state = without_appearance(model)
    if model["model_name"] == "AnyModel":
        stored = {trait: value for trait, value in state.items() if not trait.startswith("_")}
        for trait in ("_esm", "_css"):
            if state.get(trait):
                stored[trait] = [place_of(text, sources) for text in BETWEEN.split(state[trait])]
    else:
        stored = {
            key: state[key] for key in TRAITS[model["model_name"]] if state.get(key) is not None
        }
    if state.get("_dom_classes"):
        stored["_dom_classes"] = state["_dom_classes"]
    slimmed = {"type": model["model_name"], "state": stored}
    if model.get("buffers"):
        slimmed["buffers"] = [
            {"path": buffer["path"], "data": buffer["data"]} for buffer in model["buffers"]
        ]
    return slimmed


def place_of(text: str, sources: list[str]) -> int:
    if text not in sources:
        sources.append(text)
    return sources.index(text)


def name_of(title: str) -> str:
    """What an address calls the picture of this title."""
    return "picture-" + re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def visit_static_widget(self, node: static_widget) -> None:
    attributes = {"class": "static-widget", "data-widget": node["root"]}
    if node["title"]:
        name = name_of(node["title"])
        attributes |= {"data-title": node["title"], "data-name": name}
        attributes |= {} if node.get("again") else {"id": name}
    written = " ".join(f'{key}="{escape(value)}"' for key, value in attributes.items())
    self.body.append(f'<div {written}>\n<div class="static-widget-picture">')


def depart_static_widget(self, node: static_widget) -> None:
    self.body.append("</div></div>\n")


def add_host(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    widgets = list(doctree.findall(static_widget)) if doctree is not None else []
    if widgets:
        address = write_saved(Path(app.outdir), pagename, doctree["widget_sources"], widgets)
        host = "static_widgets/host.js"
        app.add_js_file(host, loading_method="defer", **{"data-saved": f"../{address}"})


def write_saved(outdir: Path, pagename: str, sources: list[str], widgets: list) -> str:
    """Write what host.js reads, a file for each page: within the page it would hold up the text.
    It is a script, since a page that is opened from a folder may load nothing else.

    Returns:
        The file's address under `_static`.
    """
    saved = {"sources": sources, "widgets": {each["root"]: each["models"] for each in widgets}}
    body = f"savedWidgets({json.dumps(saved, ensure_ascii=False, separators=(',', ':'))});\n"
    path = outdir / "_static" / "saved_widgets" / f"{pagename}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body, encoding="utf-8")
    return f"saved_widgets/{pagename}.js?v={zlib.crc32(body.encode()):08x}"


def setup(app: Sphinx) -> dict[str, object]:
    app.add_node(static_widget, html=(visit_static_widget, depart_static_widget))
    add_own_files(app, __file__, "static_widgets/host.css")
    app.connect("doctree-read", replace_widgets, priority=450)
    app.connect("html-page-context", add_host)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
