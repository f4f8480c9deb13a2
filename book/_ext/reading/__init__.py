"""What a page remembers for its reader: guesses, and the chapters that were read to their end.

A chapter asks for a guess with `<p class="guess" data-choices="…|…" data-answer="…">`, to which
`data-near` adds what is nearly right, and a fold below it has the answer and says why it is so. The
chapter comes to it further down, at `<p class="guessed">You guessed: ____</p>`. `reading.js` makes
buttons of the choices, opens the fold with a verdict, and repeats the guess in the second place: in
this tab and nowhere else. On paper, in a notebook and without JavaScript both are lines to write
on. Which chapters were read to their end is kept in this browser, and the navigation marks them.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

from book._ext.own_files import add_own_files


def add_script(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    if doctree is not None:
        app.add_js_file("reading/reading.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "reading/reading.css")
    app.connect("html-page-context", add_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
