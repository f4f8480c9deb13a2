"""The order and the words of search results, and the sections they lead to.

Sphinx's own search ranks pages by the alphabet and names of the reference above the chapters about
them, and leads to the top of a page. The script in `static` changes that, on the search page alone.
What it needs to know is added to the index here. The pages of each word begin with those that say
it at length, so that `w_o` leads to where heads are merged, and not to the first of twenty pages
that use it; and each page of each word has the number of the section that says it most.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search import js_index

from book._ext.own_files import add_own_files

INDEX = "searchindex.js"
AT_LENGTH = 1 / 3  # at least a third as often as the chapter that says a word most


class Section(NamedTuple):
    id: str
    title: Counter
    words: Counter  # the section's own, without those of sections in it


def sections_of(app: Sphinx, pagename: str) -> list[Section]:
    """How often each section of a page says each word, as the index writes words.

    What a drawing has for readers that do not see it is no part of the text.
    """
    language = app.builder.indexer.lang
    page = app.env.get_doctree(pagename)
    for form in list(page.findall(nodes.container)):
        if form.get("mime_type") == "image/svg+xml":
            form.parent.clear()

    def counted(parts: list[nodes.Node]) -> Counter:
        text = " ".join(part.astext() for part in parts)
        return Counter(map(language.stem, map(str.lower, language.split(text))))

    sections = []
    for section in page.findall(nodes.section):
        own = [child for child in section if not isinstance(child, nodes.section)]
        sections.append(Section(section["ids"][0], counted(own[:1]), counted(own)))
    return sections


def order_pages(index: dict, pages: list[list[Section]]) -> None:
    # Pages that are no chapters do not come first, and count none.
    counts = [
        sum((section.words for section in sections), Counter()) if name[0].isdigit() else Counter()
        for name, sections in zip(index["docnames"], pages, strict=True)
    ]
    for word, found in index["terms"].items():
        if isinstance(found, list):
            # A word that no page says any more is left without one.
            enough = AT_LENGTH * max((counts[page][word] for page in found), default=0)
            found.sort(key=lambda page: (counts[page][word] < enough or not counts[page], page))


def add_sections(index: dict, pages: list[list[Section]]) -> None:
    """A character for each page of each word, in the order of the words, those of titles last: the
    number, from "0", of the first section that is called by the word, or of the one that says it
    most. The page itself is 0, and its sections are numbered in the order of their ids.
    """
    ids: list[list[str]] = [[] for _ in pages]
    for places in index["alltitles"].values():
        for page, section in places:
            ids[page].append(section or "")  # the page's own title has no id
    numbers = []
    for words in index["terms"], index["titleterms"]:
        for word in sorted(words, key=lambda word: word.encode("utf-16-be")):  # JavaScript's order
            found = words[word]
            for page in found if isinstance(found, list) else [found]:
                called = [section for section in pages[page] if section.title[word]]
                best = max(called[:1] or pages[page], key=lambda section: section.words[word])
                number = sorted(ids[page]).index("" if best is pages[page][0] else best.id)
                numbers.append(number)
    index["sections"] = "".join(chr(ord("0") + number) for number in numbers)


def improve_index(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    path = Path(app.outdir) / INDEX
    index = js_index.loads(path.read_text("utf-8"))
    # Nobody can search for a number, and names of the reference are found as objects.
    index["terms"] = {word: at for word, at in index["terms"].items() if not word.isdecimal()}
    index["indexentries"] = {
        entry: places
        for entry, places in index["indexentries"].items()
        if places[0][1].startswith("term-")
    }
    pages = [sections_of(app, pagename) for pagename in index["docnames"]]
    order_pages(index, pages)
    add_sections(index, pages)
    written = json.dumps(index, separators=(",", ":"), sort_keys=True)
    path.write_text(f"{js_index.PREFIX}{written}{js_index.SUFFIX}", "utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__)
    app.connect("build-finished", improve_index)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
