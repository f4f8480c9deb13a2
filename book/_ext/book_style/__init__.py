"""How the book looks and introduces itself: one stylesheet over the theme's, and a description of
every page.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def add_style(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.config.html_static_path.append(str(Path(__file__).parent / "static"))
        app.add_css_file("book_style/book.css", priority=900)


def describe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """The page's first paragraph is its description: what search engines and previews show."""
    first = doctree and next(doctree.findall(nodes.paragraph), None)
    text = first.astext() if first else f"{app.config.html_title}: {context.get('title', pagename)}"
    context["page_description"] = " ".join(text.split())


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("builder-inited", add_style)
    # After the theme, whose description is the page's first 160 characters, heading and all.
    app.connect("html-page-context", describe, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
