"""A page loads only what it uses."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx


def add_templates(app: Sphinx, config) -> None:
    config.templates_path.insert(0, str(Path(__file__).parent / "templates"))


def setup(app: Sphinx) -> dict[str, object]:
    # Jupyter Book always sets this option of sphinx_comments, which the book does not load.
    app.add_config_value("comments_config", {}, "")
    app.connect("config-inited", add_templates)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
