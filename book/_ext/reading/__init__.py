"""What a page remembers for its reader: guesses, and the chapters that were read to their end.

A chapter asks for a guess with `<p class="guess">Your guess: ____</p>` and answers it further down
with `<p class="guessed">You guessed: ____</p>`. `reading.js` turns the first into a field and
repeats in the second what was written: in this tab and nowhere else. On paper, in a notebook and
without JavaScript both are lines to write on. Which chapters were read to their end is kept in this
browser, and the navigation marks them. Who has no time for all of it finds the way to the chapter's
last section beside the minutes that the rest takes.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

from book._ext.own_files import add_own_files

SUMMARY = "the-chapter-in-five-lines"


def link_summary(app: Sphinx, doctree: nodes.document) -> None:
    if SUMMARY not in doctree.ids:
        return
    # The paragraph that says how long the chapter takes, and what it builds on.
    minutes = next(p for p in doctree.findall(nodes.paragraph) if p.astext().startswith("About "))
    link = nodes.reference("", "the chapter in five lines", internal=True, refid=SUMMARY)
    minutes += [nodes.Text(" In a hurry: "), link, nodes.Text(".")]


def add_script(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    if doctree is not None:
        app.add_js_file("reading/reading.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "reading/reading.css")
    app.connect("doctree-read", link_summary)
    app.connect("html-page-context", add_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
