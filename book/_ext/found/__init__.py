"""What search engines and people who share a page see of it.

Every page has a description. Where the address of the published pages is known (`repository.py`,
else BOOK_URL), it also has a canonical address and a card for previews, and the site a sitemap, a
robots.txt and a page for addresses that lead nowhere. All of these need full addresses, so without
one none is written.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx

from repository import find_repository

from .card import HEIGHT, WIDTH, draw_card

CARDS = "cards"
NOT_FOUND = "404"
SITEMAP = "sitemap.xml"
RELATIVE = re.compile(r'\b(href|src|action|data-content_root)="(?![a-z]+:|#|/)(?:\./)?([^"]*)"')


def find_address(app: Sphinx, config) -> None:
    """Sphinx writes the canonical addresses, and every page anew when this value changes."""
    repository = find_repository(Path(app.srcdir).parent)
    address = repository.site if repository else os.environ.get("BOOK_URL", "")
    if address:
        config.html_baseurl = address.rstrip("/") + "/"
    config.templates_path.append(str(Path(__file__).parent / "templates"))


def add_static_files(app: Sphinx) -> None:
    if app.builder.format == "html":
        app.config.html_static_path.append(str(Path(__file__).parent / "static"))


def introduce(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """The page's first paragraph is its description, and its first explorer is on its card."""
    title = re.sub("<[^>]*>", "", context.get("title", ""))
    first = doctree and next(doctree.findall(nodes.paragraph), None)
    text = first.astext() if first else f"{app.config.html_title}: {title or pagename}"
    context["page_description"] = " ".join(text.split())
    if not app.config.html_baseurl:
        return
    context["pageurl"] = address_of(app, pagename) if pagename != NOT_FOUND else None
    if not doctree:  # the search page
        return
    picture = explorer_picture(doctree)
    draw_card(
        Path(app.outdir) / CARDS / f"{pagename}.png",
        book=app.config.html_title,
        title=title,
        description=context["page_description"],
        picture=picture and Path(app.srcdir) / picture["candidates"]["*"],
    )
    context["card"] = {
        "title": title,
        "address": f"{app.config.html_baseurl}{CARDS}/{pagename}.png",
        "alt": picture["alt"] if picture else f"{title}, a page of {app.config.html_title}",
        "width": WIDTH,
        "height": HEIGHT,
    }


def address_of(app: Sphinx, pagename: str) -> str:
    """The landing page is the site's own address."""
    own = "" if pagename == app.config.root_doc else app.builder.get_target_uri(pagename)
    return app.config.html_baseurl + own


def explorer_picture(doctree: nodes.document) -> nodes.image | None:
    for widget in doctree.findall(lambda node: node.tagname == "static_widget"):
        return next(widget.findall(nodes.image))
    return None


def add_not_found(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    if app.config.html_baseurl:
        yield NOT_FOUND, {"title": "Page not found"}, "404.html"


def write_for_crawlers(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    outdir = Path(app.outdir)
    if not app.config.html_baseurl:  # an earlier build may have known an address
        shutil.rmtree(outdir / CARDS, ignore_errors=True)
        for name in (f"{NOT_FOUND}.html", SITEMAP, "robots.txt"):
            (outdir / name).unlink(missing_ok=True)
        return
    write_sitemap(app, outdir / SITEMAP)
    robots = f"User-agent: *\nAllow: /\n\nSitemap: {app.config.html_baseurl}{SITEMAP}\n"
    (outdir / "robots.txt").write_text(robots, encoding="utf-8")
    # A server shows this page at any address, however deep.
    page = outdir / f"{NOT_FOUND}.html"
    absolute = rf'\1="{urlsplit(app.config.html_baseurl).path}\2"'
    page.write_text(RELATIVE.sub(absolute, page.read_text("utf-8")), encoding="utf-8")


def write_sitemap(app: Sphinx, path: Path) -> None:
    sitemap = ElementTree.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for pagename in sorted(app.env.found_docs):
        page = ElementTree.SubElement(sitemap, "url")
        ElementTree.SubElement(page, "loc").text = address_of(app, pagename)
    ElementTree.indent(sitemap)
    ElementTree.ElementTree(sitemap).write(path, encoding="utf-8", xml_declaration=True)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("config-inited", find_address)
    app.connect("builder-inited", add_static_files)
    app.connect("html-collect-pages", add_not_found)
    # After the theme, whose description is the page's first 160 characters, heading and all.
    app.connect("html-page-context", introduce, priority=600)
    app.connect("build-finished", write_for_crawlers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
