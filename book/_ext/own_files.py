"""The files that an extension brings: the folders `static` and `templates` beside its code."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

OVER_THE_THEME = 900  # a stylesheet with this priority comes after the theme's


def add_own_files(app: Sphinx, code: str, style: str = "", priority: int = 500) -> None:
    """Copy `static` to the pages' `_static`, look for templates in `templates` first, and put
    `style`, a stylesheet in `static`, on every page. `code` is the extension's `__file__`.
    """
    folder = Path(code).parent

    def add_folders(app: Sphinx, config) -> None:
        if (folder / "static").is_dir():
            config.html_static_path.append(str(folder / "static"))
        if (folder / "templates").is_dir():
            config.templates_path.insert(0, str(folder / "templates"))

    app.connect("config-inited", add_folders)
    if style:
        app.add_css_file(style, priority=priority)
