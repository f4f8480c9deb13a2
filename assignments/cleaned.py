"""What a student wrote or displayed, as HTML that runs nothing and loads nothing.

Markdown makes links and pictures of plain characters. So it becomes HTML first, and then the HTML
is cleaned, of which no attribute is left that is not named here.

What is shown is about as long as what was written: nothing that stands there once is shown again
and again.
"""

import re
from functools import cache
from html import escape
from urllib.parse import unquote

import bleach
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode

from assignments.course import is_test

LONGEST = 20_000  # characters: the time for some texts grows as the square of their length
SHOWN = 200_000  # characters of all cells of a notebook but the tests
CELLS = 20_000  # of a text's tables, each of whose rows Markdown fills up to the longest
LINK = re.compile(r"https?://|mailto:")
PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[\w+/=\s]*")
# What MathJax, which formgrader runs over the page, would make a link or an attribute of.
ACTIVE = re.compile(r"\\(?=(?:href|url|class|style|cssId|require)(?![a-zA-Z]))")
DATA = {"text/plain", "text/html", "text/latex", "application/json", "image/png", "image/jpeg"}
TAGS = {
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "br", "hr", "blockquote", "pre", "details"),
    *("summary", "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr"),
    *("th", "td", "a", "abbr", "b", "code", "del", "em", "i", "img", "ins", "kbd", "s", "small"),
    *("span", "strong", "sub", "sup", "u"),
}


def clean(html: str) -> str:
    """HTML without scripts, styles, classes, forms, and addresses other than LINK and PICTURE."""
    return cleaner().clean(cut(html))


@cache
def cleaner() -> bleach.Cleaner:
    # `allowed` judges an address; bleach's own list has to know its protocol besides
    made = bleach.Cleaner(TAGS, allowed, protocols={"http", "https", "mailto", "data"})
    # HTML opens what is left open, such as a `b`, again in each paragraph: a thousand of them in a
    # thousand paragraphs are a million. Here an element ends with the one that it stands in.
    made.parser.tree.reconstructActiveFormattingElements = lambda: None
    made.parser.tree.elementInActiveFormattingElements = lambda name: None
    return made


def allowed(tag: str, name: str, value: str) -> bool:
    if name == "href":
        return tag == "a" and bool(LINK.match(value))
    if name == "src":
        return tag == "img" and bool(PICTURE.fullmatch(value))
    return name in ("alt", "title") or (tag, name) == ("ol", "start")


def cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST].rstrip()}\n\n… (the rest is cut off, after {LONGEST:,} characters)"


def cut_cells(notebook: NotebookNode) -> None:
    """Keep as much of a notebook's cells as can be laid out in seconds."""
    left = SHOWN
    for cell in notebook.cells:
        if not is_test(cell):
            left -= min(len(cell.source), LONGEST)
            if left < 0:
                cell.source = f"… (not shown: more than {SHOWN:,} characters come before this)"


def text_cell(cell: NotebookNode) -> str:
    """A text cell as HTML, with the pictures that are attached to it."""
    return from_markdown(cell.source, cell.get("attachments"))


def from_markdown(text: str, attachments: object = None) -> str:
    text = cut(text)
    lines = re.split(r"\r\n?|\n", text)
    if len(lines) * (1 + max(line.count("|") for line in lines)) > CELLS:
        why = "(its tables are too large to be laid out, so this is the text as it was written)"
        return f"<p><em>{why}</em></p>\n<pre>{escape(text)}</pre>"
    env = {"attachments": attachments, "shown": set()}
    return cleaner().clean(parser().render(text, env))


@cache
def parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    made.disable("reference")  # a thousand of these take seconds
    made.use(dollarmath_plugin, allow_labels=False, renderer=formula)
    made.use(amsmath_plugin, renderer=lambda tex, _: escape(tex))
    made.add_render_rule("image", picture)
    return made


def formula(tex: str, options: dict) -> str:
    """As it was written: the feedback page has no script that would draw it, formgrader has."""
    dollars = "$$" if options["display_mode"] else "$"
    return escape(f"{dollars}{tex}{dollars}")


def picture(renderer: RendererHTML, tokens: list, index: int, options: dict, env: dict) -> str:
    """A picture that is in the notebook, or words where it is elsewhere."""
    token = tokens[index]
    address = token.attrs["src"]
    alt = escape(renderer.renderInlineAsText(token.children or [], options, env))
    if address.startswith("attachment:"):
        name = unquote(address.removeprefix("attachment:"))
        if name in env["shown"]:  # it may have megabytes, and be named a thousand times
            return f"<em>(a picture that is shown above: {alt or 'without a name'})</em>"
        env["shown"].add(name)
        address = attached(name, env["attachments"])
    if not PICTURE.fullmatch(address):
        return f"<em>(a picture that is not in the notebook: {alt or 'without a name'})</em>"
    return f'<img src="{address}" alt="{alt or "A picture"}">'


def attached(name: str, attachments: object) -> str:
    """The address of an attached picture, or "". Nobody has looked at what a file calls so yet."""
    kinds = attachments.get(name) if isinstance(attachments, dict) else None
    for kind, data in kinds.items() if isinstance(kinds, dict) else ():
        data = "".join(map(str, data)) if isinstance(data, list) else str(data)
        address = f"data:{kind};base64,{data}"
        if PICTURE.fullmatch(address):
            return address
    return ""


def clean_outputs(notebook: NotebookNode) -> None:
    """Leave what can be shown. Formgrader writes an output's metadata into HTML as they are."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type in ("display_data", "execute_result"):
                data = output.data
                if "text/html" in data:
                    data["text/html"] = clean(data["text/html"])
                elif "text/markdown" in data:
                    data["text/html"] = from_markdown(data["text/markdown"])
                output.metadata = NotebookNode()
                output.data = NotebookNode({kind: data[kind] for kind in data if kind in DATA})


def clean_texts(notebook: NotebookNode) -> None:
    """Put clean HTML where Markdown stands, for a program that takes the notebook's for its own.

    To Markdown a `div` without a blank line is one piece of HTML, in which nothing is marked up.
    """
    for cell in notebook.cells:
        if cell.cell_type != "code":
            html = text_cell(cell) if cell.cell_type == "markdown" else clean(cell.source)
            html = ACTIVE.sub("&#92;&#8203;", html.strip())  # a sign without width ends the command
            cell.source = "<div>" + re.sub(r"\n(?=[^\S\n]*\n)", "&#10;", html) + "</div>"
            cell.pop("attachments", None)
