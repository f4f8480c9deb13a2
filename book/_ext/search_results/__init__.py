"""The order and the words of search results.

Sphinx's own search ranks pages by the alphabet and names of the reference above the chapters about
them. The script in `static` changes that, on the search page alone. It also needs to know which
chapter is about a word: the index lists the pages of each word with those first that say it at
length, so that `w_o` leads to where heads are merged, and not to the first of twenty pages that use
it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.search import js_index

from book._ext.own_files import add_own_files

INDEX = "searchindex.js"
AT_LENGTH = 1 / 3  # at least a third as often as the chapter that says a word most


def words_of(app: Sphinx, pagename: str) -> Counter:
    """How often a chapter says each word. Pages that are none do not come first, and count none."""
    if not pagename[0].isdigit():
        return Counter()
    language = app.builder.indexer.lang
    words = map(str.lower, language.split(app.env.get_doctree(pagename).astext()))
    return Counter(map(language.stem, words))


def order_pages(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    path = Path(app.outdir) / INDEX
    index = js_index.loads(path.read_text("utf-8"))
    counts = [words_of(app, pagename) for pagename in index["docnames"]]
    for word, pages in index["terms"].items():
        if isinstance(pages, list):
            # A word that no page says any more is left without one.
            enough = AT_LENGTH * max((counts[page][word] for page in pages), default=0)
            pages.sort(key=lambda page: (counts[page][word] < enough or not counts[page], page))
    path.write_text(js_index.dumps(index), "utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__)
    app.connect("build-finished", order_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
