"""How the book looks: one stylesheet over the theme's, and a logo."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx


def add_style(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.config.html_static_path.append(str(Path(__file__).parent / "static"))
        app.add_css_file("book_style/book.css", priority=900)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("builder-inited", add_style)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
