"""How to cite the book, in BibTeX, from CITATION.cff: programs and readers are told the same.

    ```{citation}
    ```

Where the address of the published pages is known, it is a part of it.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from docutils.nodes import Node, literal_block
from pybtex.database import BibliographyData, Entry, Person
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

NAME = "CITATION.cff"


class Citation(SphinxDirective):
    """The preferred citation as a block of BibTeX, which can be copied."""

    def run(self) -> list[Node]:
        path = Path(self.env.srcdir).parent / NAME
        self.env.note_dependency(str(path))
        text = bibtex(yaml.safe_load(path.read_text("utf-8")), self.config.html_baseurl)
        return [literal_block(text, text, language="bibtex")]


def bibtex(citation: dict, address: str) -> str:
    """The citation that a CITATION.cff prefers, with the version and the licences of the file."""
    book = citation["preferred-citation"]
    fields = {
        "title": book["title"],
        "year": str(book["year"]),
        "note": f"Version {citation['version']}. Licences: {', '.join(citation['license'])}",
    }
    if address:
        fields["url"] = address
    entry = Entry(book["type"], fields, {"author": [person(one) for one in book["authors"]]})
    key = book["title"].lower().replace(",", "").replace(" ", "-")
    return BibliographyData({key: entry}).to_string("bibtex").strip()


def person(author: dict) -> Person:
    """A person has given and family names, a group one name, which braces keep whole."""
    if "name" in author:
        return Person("{" + author["name"] + "}")
    return Person(first=author["given-names"], last=author["family-names"])


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("citation", Citation)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
