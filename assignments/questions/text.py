"""Markdown of the book as XHTML that any LMS shows: formulas in Unicode, no link, no role."""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

from assignments.questions.sources import BOOK

SIGNS = {
    r"\cdot": "·",
    r"\approx": "≈",
    r"\pi": "π",
    r"\beta": "β",
    r"\varepsilon": "ε",
    r"\,": " ",
    r"\text": "",
    "{,}": ",",
    "-": "−",
}
ARGUMENT = r" ?(?:\{([^{}]*)\}|(\w))"  # a group, or a single character
FORMS = {
    "_": r"<sub>\1\2</sub>",
    r"\^": r"<sup>\1\2</sup>",
    r"\\sqrt": r"√\1\2",
    r"\\tfrac\{(\w+)\}": r"\1/\2\3",
}


@cache
def html(markdown: str) -> str:
    """Blocks: paragraphs, lists, tables and code."""
    return parser().render(markdown).strip()


@cache
def inline(markdown: str) -> str:
    """A phrase, for a choice, without a paragraph around it."""
    return parser().renderInline(markdown)


def formula(tex: str) -> str:
    r"""A formula of the questions in Unicode, with `sup` and `sub` for what is raised or lowered.

    Raises:
        ValueError: a command that nobody has translated yet.
    """
    for command, sign in SIGNS.items():
        tex = tex.replace(command, sign)
    for command, form in FORMS.items():
        tex = re.sub(command + ARGUMENT, form, tex)
    if "\\" in tex or "{" in tex:
        raise ValueError(
            f"the formula {tex!r} has a command that an LMS would show unchanged: write it in "
            "Unicode, or translate the command in assignments/questions/text.py"
        )
    return tex


@cache
def parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "xhtmlOut": True}).enable("table")
    made.use(dollarmath_plugin, renderer=lambda tex, options: formula(tex))
    made.use(myst_role_plugin)
    # A link leads to a file of the book, which the LMS does not have.
    for token in ("link_open", "link_close"):
        made.add_render_rule(token, nothing)
    made.add_render_rule("myst_role", role)
    return made


def nothing(renderer: RendererHTML, tokens: list, index: int, options: dict, env: dict) -> str:
    return ""


def role(renderer: RendererHTML, tokens: list, index: int, options: dict, env: dict) -> str:
    """{term}`words <entry>` as its words, {cite:t}`key` as authors and year."""
    token = tokens[index]
    if token.meta["name"].startswith("cite"):
        return citations()[token.content]
    return re.sub(r" <[^>]+>$", "", token.content)


@cache
def citations() -> dict[str, str]:
    """Each work of the bibliography as "First author et al. (year)"."""
    entries = re.findall(
        r"@\w+\{(\w+),.*?author\s*=\s*\{(.*?)\},.*?year\s*=\s*\{(\d{4})\}",
        (BOOK / "references.bib").read_text("utf-8"),
        re.DOTALL,
    )
    return {
        key: f"{authors.split(',')[0]}{' et al.' if ' and ' in authors else ''} ({year})"
        for key, authors, year in entries
    }
