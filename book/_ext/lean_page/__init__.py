"""A page loads only what it uses.

The stock page carries an icon library of 542 kB, its web fonts, a stylesheet with every icon and
component of the theme, and scripts for features that the book does not have. Here every page gets
one stylesheet with the rules that the book's pages use (`styles.py`), icons from a font cut down to
them, and the scripts that do something on it.
"""

from __future__ import annotations

from sphinx.application import Sphinx

from book._ext.own_files import add_own_files

from .styles import write_styles

# Read by `write_styles` in this order: the theme's own, which its template adds, then what the
# extensions ask for.
THEME_STYLES = ("styles/theme.css", "styles/pydata-sphinx-theme.css")
# sphinx_design's tabs are not used.
UNUSED_SCRIPTS = ("design-tabs.js",)


def trim_page(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    styles = sorted(context["css_files"], key=lambda style: style.priority)
    names = [str(style.filename) for style in styles]
    app.page_styles = [*THEME_STYLES, *(name.removeprefix("_static/") for name in names)]
    context["css_files"] = ["_static/page.css"]
    scripts = []
    for script in context["script_files"]:
        # The theme's inline scripts set options of its version switcher, which the book does not
        # have, and need another script to have run before.
        inline = not script.filename
        if not inline and not str(script.filename).endswith(UNUSED_SCRIPTS):
            scripts.append(deferred(script))
    context["script_files"] = scripts


def deferred(script):
    """The same script, run after the page is read: in the order of the page, and without holding up
    its text.
    """
    attributes = {key: value for key, value in script.attributes.items() if key != "async"}
    return type(script)(
        script.filename, priority=script.priority, **{**attributes, "defer": "defer"}
    )


def setup(app: Sphinx) -> dict[str, object]:
    # Jupyter Book always sets this option of sphinx_comments, which the book does not load.
    app.add_config_value("comments_config", {}, "")
    add_own_files(app, __file__)
    # After the theme, which adds its scripts at 500.
    app.connect("html-page-context", trim_page, priority=900)
    # After mathml, whose stylesheet and font it reads.
    app.connect("build-finished", write_styles, priority=900)
    # Not safe to write in parallel: the pages tell `write_styles` which stylesheets they want.
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
