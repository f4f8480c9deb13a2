"""Put drawings into the page itself, where they take its colours and its links.

A drawing of the book is an SVG, and its output's metadata has a second one, for a phone. myst-nb
would show the first as a picture from a file, which knows neither the page's theme nor its other
pages. `#chapter-3` in a drawing leads to the page of chapter 3.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

from book._ext.notebook_outputs import notebook_outputs, part, read_notebook
from book._ext.own_files import OVER_THE_THEME, add_own_files

SVG = "image/svg+xml"
TO_CHAPTER = re.compile(r'href="#chapter-(\d+)"')
NUMBERED = re.compile(r"0*(\d+)-")


class drawing(nodes.General, nodes.Element):
    """The SVGs `wide` and `narrow`, `alt`, the same in words, and where it `leads`: to chapters."""


def replace_drawings(app: Sphinx, doctree: nodes.document) -> None:
    notebook = read_notebook(app)
    if notebook is None:
        return
    found = ((NUMBERED.match(name), name) for name in app.env.found_docs)
    pages = {match[1]: name for match, name in found if match}

    def linked(svg: str) -> str:
        return TO_CHAPTER.sub(lambda match: f'href="{pages[match[1]]}.html"', svg)

    for output in notebook_outputs(app, notebook, doctree):
        about = output.stored.metadata.get(SVG, {})
        picture = part(output.bundle, SVG)
        if picture is None or "narrow" not in about:
            continue
        wide, narrow = linked(output.stored.data[SVG]), linked(about["narrow"])
        leads = {
            f"chapter {number}": f"{pages[number]}.html"
            for number in TO_CHAPTER.findall(output.stored.data[SVG])
        }
        shown = drawing("", wide=wide, narrow=narrow, alt=about["alt"], leads=leads)
        picture.replace_self(shown)


def visit_drawing(self, node: drawing) -> None:
    self.body.append(f'<div class="drawn">{node["wide"]}{node["narrow"]}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, object]:
    app.add_node(drawing, html=(visit_drawing, None))
    add_own_files(app, __file__, "drawings/drawings.css", OVER_THE_THEME)
    # After alternative_texts (400), which looks for a picture; before static_widgets (450), which
    # takes the drawing of a widget along.
    app.connect("doctree-read", replace_drawings, priority=420)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
