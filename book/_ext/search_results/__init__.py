"""The order and the words of search results.

Sphinx's own search ranks pages by the alphabet and names of the reference above the chapters about
them. The script in `static` changes that, on the search page alone.
"""

from __future__ import annotations

from sphinx.application import Sphinx

from book._ext.own_files import add_own_files


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
