"""Every page as plain Markdown beside it, and `llms.txt`, which lists them.

05-masking.md stands beside 05-masking.html: for readers who want to quote a page, search it, or
give it to a program. It holds what a reader sees, folds open, outputs in, and of a picture or an
explorer its text. Links and pictures have full addresses where the book's own is known. `llms.txt`
is in the form of llmstxt.org: the pages by the parts of the book, each with its first paragraph. A
button on every page copies its Markdown.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from book._ext.chapter_form import lead_of
from book._ext.own_files import OVER_THE_THEME, add_own_files

from .translator import PageTranslator

INDEX = "llms.txt"
TERMS = "Text and pictures: CC BY 4.0. Code: MIT."


def write_page(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    if doctree is None:  # the search page, the page for a wrong address
        return
    address = app.config.html_baseurl + app.builder.get_target_uri(pagename)
    translator = PageTranslator(doctree, app.builder, address)
    doctree.walkabout(translator)
    end = f"---\n\nFrom [{app.config.html_title}]({address}). {TERMS}\n"
    name = f"{pagename}.md"
    (Path(app.outdir) / name).write_text(f"{translator.astext()}\n{end}", "utf-8")
    context["markdown_page"] = name
    context["metatags"] += f'<link rel="alternate" type="text/markdown" href="{name}">'


def write_index(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    root = app.config.root_doc
    lines = [f"# {app.config.html_title}", "", f"> {first_paragraph(app, root)}", ""]
    lines += ["Every page of the book as Markdown. " + TERMS]
    lines += ["", "## First page", "", entry(app, root)]
    for part in app.env.get_doctree(root).findall(addnodes.toctree):
        lines += ["", f"## {part['caption']}", ""]
        lines += [entry(app, pagename) for _, pagename in part["entries"]]
    (Path(app.outdir) / INDEX).write_text("\n".join(lines) + "\n", "utf-8")


def entry(app: Sphinx, pagename: str) -> str:
    title = app.env.titles[pagename].astext()
    address = f"{app.config.html_baseurl}{pagename}.md"
    return f"- [{title}]({address}): {first_paragraph(app, pagename)}"


def first_paragraph(app: Sphinx, pagename: str) -> str:
    return " ".join(lead_of(app.env.get_doctree(pagename)).astext().split())


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "markdown_pages/copy.css", OVER_THE_THEME)
    app.connect("html-page-context", write_page)
    app.connect("build-finished", write_index)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
