"""Mathematics as MathML, made when the book is built: a page loads no script to typeset an
equation.

`convert.py` turns LaTeX into MathML. The font is STIX Two Math, taken from the package ziamath and
cut down to the characters that the pages use.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from book._ext.own_files import add_own_files

from .convert import Untypesettable, to_mathml
from .font import write_font

LOGGER = logging.getLogger(__name__)
# An equation wider than the page scrolls inside its own box. The theme's script makes boxes of its
# class for wide tables reachable by keyboard where they really scroll; this box takes part in that.
SCROLLING = "math-scroll pst-scrollable-table-container"


def mathml(node: nodes.Node, display: bool) -> str:
    try:
        return to_mathml(node.astext(), display)
    except Untypesettable as error:
        LOGGER.warning("mathematics: %s", error, location=node, type="mathml")
        return ""


def visit_math(self, node: nodes.math) -> None:
    self.body.append(mathml(node, display=False))
    raise nodes.SkipNode


def visit_math_block(self, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(f'<div class="{SCROLLING}">{mathml(node, display=True)}</div>')
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, object]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    add_own_files(app, __file__, "mathml/math.css")
    app.connect("build-finished", write_font)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
