"""How the book looks: a stylesheet over the theme's, one for paper, and a logo."""

from __future__ import annotations

from sphinx.application import Sphinx

from book._ext.own_files import OVER_THE_THEME, add_own_files


def put_ways_under_title(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object
) -> None:
    """The ways to the pages before and after once more, for a phone, whose bar has no room."""
    if context.get("prev") and "</h1>" in context.get("body", ""):
        ways = app.builder.templates.render("turn-page.html", context)
        nav = f'</h1>\n<nav class="under-title" aria-label="Pages before and after">{ways}</nav>'
        context["body"] = context["body"].replace("</h1>", nav, 1)


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "book_style/book.css", OVER_THE_THEME)
    app.add_css_file("book_style/print.css", priority=OVER_THE_THEME)
    app.connect("html-page-context", put_ways_under_title)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
