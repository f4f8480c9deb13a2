"""The page that a server shows at an address that leads nowhere: `404.html`.

A server shows it at any address, however deep, so its own links are absolute: from the root of the
server to the folder of the pages. Where the book's address is not known, it is not written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from sphinx.application import Sphinx

from book._ext.own_files import add_own_files

NAME = "404"
RELATIVE = re.compile(r'\b(href|src|action|data-content_root)="(?![a-z]+:|#|/)(?:\./)?([^"]*)"')


def add_page(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    if app.config.html_baseurl:
        yield NAME, {"title": "Page not found"}, "404.html"


def drop_address(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if pagename == NAME:
        context["pageurl"] = None  # it has no canonical address


def make_absolute(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    page = Path(app.outdir) / f"{NAME}.html"
    if not app.config.html_baseurl:  # an earlier build into the same folder may have known one
        page.unlink(missing_ok=True)
        return
    absolute = rf'\1="{urlsplit(app.config.html_baseurl).path}\2"'
    page.write_text(RELATIVE.sub(absolute, page.read_text("utf-8")), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__)
    app.connect("html-collect-pages", add_page)
    app.connect("html-page-context", drop_address)
    app.connect("build-finished", make_absolute)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
