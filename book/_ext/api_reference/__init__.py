"""The signatures of the reference, which Sphinx's autodoc writes, as the code and its readers need.

Strings stand in the quotes of the code, Float[Tensor, "batch seq"], where Sphinx takes single ones.
The lines of a long signature are no list of definitions without terms, which screen readers cannot
make sense of, and break where the page is narrow.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.addnodes import desc_sig_literal_string
from sphinx.application import Sphinx

from book._ext.own_files import add_own_files

SIGNATURE = re.compile(r'<dt class="sig .*?</dt>', re.DOTALL)
LINES = {"<dl>": '<span class="sig-lines">', "<dd>": '<span class="sig-line">'}
LINES |= {"</dl>": "</span>", "</dd>": "</span>"}


def requote(app: Sphinx, doctree: nodes.document) -> None:
    for string in doctree.findall(is_string):
        string[:] = [nodes.Text(f'"{string.astext()[1:-1]}"')]


def is_string(node: nodes.Node) -> bool:
    default = isinstance(node, nodes.inline) and "default_value" in node["classes"]
    return isinstance(node, desc_sig_literal_string) or (default and node.astext()[0] == "'")


def break_signatures(app: Sphinx, pagename: str, template: str, context: dict, doctree) -> None:
    def in_lines(signature: re.Match) -> str:
        return re.sub("|".join(LINES), lambda tag: LINES[tag[0]], signature[0])

    if "body" in context:
        context["body"] = SIGNATURE.sub(in_lines, context["body"])


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "api_reference/signatures.css")
    app.connect("doctree-read", requote)
    app.connect("html-page-context", break_signatures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
