"""How the book looks: a stylesheet over the theme's, one for paper, and a logo."""

from __future__ import annotations

from sphinx.application import Sphinx

from book._ext.own_files import OVER_THE_THEME, add_own_files


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "book_style/book.css", OVER_THE_THEME)
    app.add_css_file("book_style/print.css", priority=OVER_THE_THEME)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
