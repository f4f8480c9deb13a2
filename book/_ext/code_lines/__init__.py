"""Code and printed output that can be read in the window of a phone.

A line of code that does not fit is wrapped there, and what is wrapped must not look like a line of
its own: in Python the place where a line begins has a meaning. A line that may have to wrap stands
in an element that says how far it is indented, and the stylesheet begins its rest two columns
deeper, where no line of Python begins. Printed tables keep their columns: each output says how many
it has, and the stylesheet chooses the largest letters with which these fit.
"""

from __future__ import annotations

import re
from html import unescape

from sphinx.application import Sphinx

from book._ext.own_files import OVER_THE_THEME, add_own_files

BLOCK = re.compile(
    r'(?P<start><div class="[^"]*\bhighlight-(?P<language>[\w-]+) [^"]*">'
    r'<div class="highlight"><pre)>'
    r"(?:<span></span>(?!\n))?(?P<lines>.*?)</pre>",
    re.DOTALL,
)
TAG = re.compile(r"<[^>]+>")
# Names, punctuation and spaces have the colour of the code around them: their elements say nothing,
# and are every second element of a page.
COLOURLESS = ("n", "nn", "nx", "p", "w")
SAYS_NOTHING = re.compile(rf'<span class="(?:{"|".join(COLOURLESS)})">([^<]*)</span>')
CODE_FITS = 36  # columns of code, in a window of 320 px
OUTPUT_FITS = 46  # columns of output, in a window of 360 px
# Where a line may be wrapped that has too few spaces: behind an opening bracket, before a point.
OPPORTUNITY = re.compile(r'(?<=[(\[])(?![)\]])|(?=<span class="o">\.</span>)')
DEEPER = 2


def hanging(line: str, indent: int) -> str:
    place = f' style="--indent:{indent}"' if indent else ""
    return f'<span class="hang"{place}>{line}</span>'


def code(line: str) -> str:
    """A line of code that may have to wrap, and one that fits as it is."""
    text = unescape(TAG.sub("", line))
    if len(text) <= CODE_FITS:
        return line
    indent = len(text) - len(text.lstrip())
    if max(map(len, text.split())) > CODE_FITS - indent - DEEPER:
        line = OPPORTUNITY.sub("<wbr>", line)
    return hanging(line, indent)


def is_sentence(text: str) -> bool:
    """Words with one space between them, which may wrap; a table or a tensor may not."""
    letters = sum(map(str.isalpha, text))
    return "  " not in text.strip() and letters > 0.6 * len(text)


def wrap(block: re.Match) -> str:
    lines, style = block["lines"].split("\n"), ""
    if block["language"] == "myst-ansi":
        columns = 1
        for nth, line in enumerate(lines):
            text = unescape(TAG.sub("", line))
            if len(text) > OUTPUT_FITS and is_sentence(text):
                lines[nth] = hanging(line, 0)
            else:
                columns = max(columns, len(text))
        style = f' style="--columns:{columns}"'
    else:
        lines = [code(SAYS_NOTHING.sub(r"\1", line)) for line in lines]
    return "".join([block["start"], style, ">", "\n".join(lines), "</pre>"])


def wrap_lines(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if "body" in context:
        context["body"] = BLOCK.sub(wrap, context["body"])


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "code_lines/code_lines.css", OVER_THE_THEME)
    # After symbols, which look for the names in the code.
    app.connect("html-page-context", wrap_lines, priority=550)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
