"""The addresses of all pages for search engines, in `sitemap.xml`, which `robots.txt` names.

Both need full addresses, so where the book's own is not known neither is written.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from sphinx.application import Sphinx

SITEMAP, ROBOTS = "sitemap.xml", "robots.txt"


def write_sitemap(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    outdir, address = Path(app.outdir), app.config.html_baseurl
    if not address:  # an earlier build into the same folder may have known one
        for name in (SITEMAP, ROBOTS):
            (outdir / name).unlink(missing_ok=True)
        return
    sitemap = ElementTree.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for pagename in sorted(app.env.found_docs):
        # The landing page is the site's own address.
        own = "" if pagename == app.config.root_doc else app.builder.get_target_uri(pagename)
        page = ElementTree.SubElement(sitemap, "url")
        ElementTree.SubElement(page, "loc").text = address + own
    ElementTree.indent(sitemap)
    ElementTree.ElementTree(sitemap).write(outdir / SITEMAP, encoding="utf-8", xml_declaration=True)
    robots = f"User-agent: *\nAllow: /\n\nSitemap: {address}{SITEMAP}\n"
    (outdir / ROBOTS).write_text(robots, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", write_sitemap)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
