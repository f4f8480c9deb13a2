"""Every picture of the book that moves, with a link to it.

    ```{moving-pictures}           of each chapter
    ```{moving-pictures} puzzles   those with a score, each on a page by itself

A page names each by its title (`static_widgets`), so the list is found in the notebooks.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book._ext.guide_lists import number
from book._ext.static_widgets import name_of
from tools.widget_state import WIDGET_STATE, reached, views

# Where a reader is told how many of how many are right by what they have set.
PUZZLES = ("Be the head", "Paint a mask", "Break it", "Wire two heads")


def titles(path: Path) -> list[str]:
    """Of the pictures that a notebook shows, in its order, each once."""
    notebook = nbformat.reads(path.read_text("utf-8"), as_version=4)
    models = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    shown = (models[each]["state"].get("title") for each in reached(models, views(notebook)))
    return list(dict.fromkeys(filter(None, shown)))


class MovingPictures(SphinxDirective):
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        puzzles = self.arguments == ["puzzles"]
        listed = nodes.bullet_list(bullet="-")
        for path in sorted(Path(self.env.srcdir).glob("[0-9]*.ipynb"), key=number):
            self.env.note_dependency(str(path))
            page = f"{path.stem}.html{'?alone' * puzzles}"
            shown = [
                nodes.reference("", title, internal=True, refuri=f"{page}#{name_of(title)}")
                for title in titles(path)
                if (title in PUZZLES) == puzzles
            ]
            for each in [[one] for one in shown] if puzzles else filter(None, [shown]):
                line = nodes.paragraph("", f"Chapter {number(path)}: ")
                for nth, one in enumerate(each):
                    line += [nodes.Text(" · " * (nth > 0)), one]
                listed += nodes.list_item("", line)
        return [listed]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("moving-pictures", MovingPictures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
