"""Says on a page which parts of it are shown on the chapter's slides.

A cell's role stands in its metadata, where Jupyter's own inspector writes it ("Slide Type"):
`slide` begins a slide with what the cell becomes, `fragment` shows that on the same slide at the
next click. A cell without a role is what the speaker says. On the page the first thing that a cell
becomes has its role as a class, and the rest another one. `tools.slides` reads them.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from book._ext.notebook_outputs import cell_of, read_notebook

CLASSES = {"slide": "slide-begins", "fragment": "slide-click"}
THE_REST = "slide-goes-on"
UNMARKED = (nodes.section, nodes.title)


def mark(app: Sphinx, doctree: nodes.document) -> None:
    notebook = read_notebook(app)
    if notebook is None:
        return
    roles = [cell.metadata.get("slideshow", {}).get("slide_type") for cell in notebook.cells]
    for nth, role in enumerate(roles, 1):
        if role not in (None, *CLASSES):
            raise ExtensionError(
                f"{app.env.docname}, cell {nth}: the slide type {role!r} is not used here. "
                f"It is one of {', '.join(map(repr, CLASSES))}, or none for what is said"
            )
    begun = set()
    for node in doctree.findall(nodes.Element):
        if not isinstance(node.parent, nodes.section) or isinstance(node, UNMARKED):
            continue
        cell = cell_of(node)
        if cell >= 0 and roles[cell]:
            node["classes"].append(THE_REST if cell in begun else CLASSES[roles[cell]])
            begun.add(cell)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", mark, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
