"""Which repository the book is built from, for the extensions that need an address.

`tools.repository` finds it in the environment or in the checkout. The other extensions read it from
Sphinx's configuration: `book_repository` is the repository or None, `html_baseurl` the address of
the published pages, `notfound_urls_prefix` the folder in it. Where no repository is known, BOOK_URL
alone can give the address.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from sphinx.application import Sphinx

from tools.repository import Repository, find_repository


def find_addresses(app: Sphinx, config) -> None:
    config.book_repository = find_repository(Path(app.srcdir).parent)
    found = config.book_repository
    address = found.site if found else os.environ.get("BOOK_URL", "")
    if address:
        config.html_baseurl = address.rstrip("/") + "/"
    # A server shows 404.html at any address, so its links begin at the root of the server.
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path or "/"


def setup(app: Sphinx) -> dict[str, object]:
    # "html": where it changed, every page is written again, as it is where html_baseurl did.
    app.add_config_value("book_repository", None, "html", types=[Repository, type(None)])
    # Before the extensions that read the two.
    app.connect("config-inited", find_addresses, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
