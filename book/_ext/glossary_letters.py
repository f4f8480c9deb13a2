"""A line of letters above the glossary, each a link to the first of its terms."""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def add_letters(app: Sphinx, doctree: nodes.document) -> None:
    for glossary in list(doctree.findall(addnodes.glossary)):
        first: dict[str, str] = {}
        for term in glossary.findall(nodes.term):
            letter = next(sign for sign in term.astext().upper() if sign.isalpha())
            first.setdefault(letter, term["ids"][0])
        line = nodes.paragraph("", "", classes=["letters"])
        for letter in sorted(first):
            line += nodes.reference("", letter, internal=True, refid=first[letter])
            line += nodes.Text(" ")
        glossary.parent.insert(glossary.parent.index(glossary), line)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", add_letters)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
