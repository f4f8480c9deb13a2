"""One colour for each of Q, K, V, scores, weights and output, in formulas and in code.

The symbols of notation.md and the names that the code gives them get a class, `sym sym-q` and so
on; the stylesheet colours and underlines them, each underline in a style of its own. `symbols.js`
lights all places of a symbol on the page, the explorers' pictures among them, while one of them is
pointed at.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

from book._ext.own_files import add_own_files

# What stands in a formula, and what stands in code, for each symbol.
SYMBOLS = {
    "q": ("Q", "q"),
    "k": ("K", "k"),
    "v": ("V", "v"),
    "scores": ("S", "scores"),
    "weights": ("A", "weights"),
    "output": ("Y", "output"),
}
OF_FORMULA = {letter: name for name, (letter, _) in SYMBOLS.items()}
OF_CODE = {variable: name for name, (_, variable) in SYMBOLS.items()}
CODE = re.compile(r'<span class="n">(?P<name>' + "|".join(OF_CODE) + r")</span>")


def css_class(letter: str) -> str | None:
    """The class of a letter of a formula, for `mathml`; None for one that is no symbol."""
    return f"sym sym-{OF_FORMULA[letter]}" if letter in OF_FORMULA else None


def coloured(body: str) -> str:
    """The page with the symbols in its code marked."""

    def in_code(found: re.Match) -> str:
        return f'<span class="n sym sym-{OF_CODE[found["name"]]}">{found["name"]}</span>'

    return CODE.sub(in_code, body)


def colour(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    if "body" in context and doctree is not None:
        body = context["body"] = coloured(context["body"])
        if 'class="n sym' in body or 'class="sym' in body:
            app.add_js_file("symbols/symbols.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "symbols/symbols.css")
    app.connect("html-page-context", colour)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
