"""What search engines and previews show of a page: a description, and a card with its explorer.

Every page has a description. Where the address of the published pages is known, it also has a
canonical address and a card, a picture that is drawn when the book is built. Both need full
addresses, so without one neither is written.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from book._ext.chapter_form import lead_of
from book._ext.own_files import add_own_files

from .card import HEIGHT, WIDTH, draw_card

FOLDER = "cards"


def introduce(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """What the page is about is its description, and its first explorer is on its card."""
    title = re.sub("<[^>]*>", "", context.get("title", ""))
    lead = doctree and lead_of(doctree)
    text = lead.astext() if lead else f"{app.config.html_title}: {title or pagename}"
    context["page_description"] = " ".join(text.split())
    if not app.config.html_baseurl:
        return
    if pagename == app.config.root_doc:
        context["pageurl"] = app.config.html_baseurl  # the landing page is the site's own address
    if not doctree:  # the search page, the page for a wrong address
        return
    picture = explorer_picture(doctree)
    draw_card(
        Path(app.outdir) / FOLDER / f"{pagename}.png",
        book=app.config.html_title,
        title=title,
        description=context["page_description"],
        picture=picture and Path(app.srcdir) / picture["candidates"]["*"],
    )
    context["card"] = {
        "title": title,
        "address": f"{app.config.html_baseurl}{FOLDER}/{pagename}.png",
        "alt": picture["alt"] if picture else f"{title}, a page of {app.config.html_title}",
        "width": WIDTH,
        "height": HEIGHT,
    }


def explorer_picture(doctree: nodes.document) -> nodes.image | None:
    """That of the first explorer with one: the still of another is a drawing, which is no file."""
    widgets = doctree.findall(lambda node: node.tagname == "static_widget")
    return next((picture for each in widgets for picture in each.findall(nodes.image)), None)


def remove_cards(app: Sphinx, exception: Exception | None) -> None:
    """An earlier build into the same folder may have known an address."""
    if exception is None and not app.config.html_baseurl:
        shutil.rmtree(Path(app.outdir) / FOLDER, ignore_errors=True)


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__)
    # After the theme, whose description is the page's first 160 characters, heading and all.
    app.connect("html-page-context", introduce, priority=600)
    app.connect("build-finished", remove_cards)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
