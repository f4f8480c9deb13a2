"""Pair what a notebook stored with what myst-nb made of it.

myst-nb keeps an output's data in the document tree but drops its metadata. The extensions that need
both (the alternative text of a picture, the state behind a widget) walk a page with
`notebook_outputs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

NOTEBOOK = "book:notebook"
CELL_LINES = 10_000  # myst-nb numbers the first cell's lines from here, the second's from twice


class Output(NamedTuple):
    place: str  # "03-splitting-heads.ipynb, cell 7", for error messages
    stored: nbformat.NotebookNode  # the output in the notebook: data and metadata
    bundle: nodes.container  # its node in the document: one child per MIME type


def read_notebook(app: Sphinx) -> nbformat.NotebookNode | None:
    """The notebook of the page that is being read, or None when the page is not a notebook."""
    path = Path(app.env.doc2path(app.env.docname))
    if path.suffix != ".ipynb":
        return None
    of_this_page = app.env.temp_data  # Sphinx empties it after each page: a notebook is parsed once
    if NOTEBOOK not in of_this_page:
        of_this_page[NOTEBOOK] = nbformat.read(path, as_version=4)
    return of_this_page[NOTEBOOK]


def notebook_outputs(
    app: Sphinx, notebook: nbformat.NotebookNode, doctree: nodes.document
) -> Iterator[Output]:
    """Every rich output (display data or a cell's result) of the page, in order."""
    name = Path(app.env.doc2path(app.env.docname)).name
    for cell in list(doctree.findall(nodes.container)):
        if cell.get("nb_element") != "cell_code":
            continue
        bundles = [
            node
            for node in cell.findall(nodes.container)
            if node.get("nb_element") == "mime_bundle"
        ]
        stored = [
            output
            for output in notebook.cells[cell["cell_index"]].outputs
            if output.output_type in ("display_data", "execute_result")
        ]
        if not bundles:  # the cell's outputs are removed from the page by a tag
            continue
        place = f"{name}, cell {cell['cell_index'] + 1}"
        if len(bundles) != len(stored):
            raise ExtensionError(
                f"{place}: {len(stored)} outputs are stored, {len(bundles)} rendered"
            )
        for output, bundle in zip(stored, bundles, strict=True):
            yield Output(place, output, bundle)


def cell_of(node: nodes.Element) -> int:
    """The place of the cell that a node comes from, counted from 0, or -1."""
    return node.get("cell_index", (node.line or 0) // CELL_LINES - 1)


def part(bundle: nodes.container, mime_type: str) -> nodes.Element | None:
    """The rendered node of one MIME type of an output."""
    for child in bundle.children:
        if child["mime_type"] == mime_type:
            return child.children[0]
    return None
