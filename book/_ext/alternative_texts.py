"""Give every picture that a notebook stores its alternative text.

The text comes from the output's metadata, {"image/png": {"alt": "…"}}, which myst-nb ignores. A
picture without one fails the build, since nothing else on the page can say what it shows.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from book._ext.notebook_outputs import notebook_outputs, part, read_notebook

PICTURES = ("image/png", "image/svg+xml", "image/jpeg", "image/gif")


def set_alternative_texts(app: Sphinx, doctree: nodes.document) -> None:
    notebook = read_notebook(app)
    if notebook is None:
        return
    for output in notebook_outputs(app, notebook, doctree):
        for mime_type in PICTURES:
            picture = part(output.bundle, mime_type)
            if picture is None:
                continue
            alt = output.stored.metadata.get(mime_type, {}).get("alt", "").strip()
            if not alt:
                raise ExtensionError(
                    f"{output.place}: the picture ({mime_type}) has no alternative text. "
                    f'Put it into the output\'s metadata: {{"{mime_type}": {{"alt": "…"}}}}'
                )
            picture["alt"] = alt


def setup(app: Sphinx) -> dict[str, object]:
    # Before Sphinx collects images (500) and before static_widgets takes the pictures of its
    # widgets (450).
    app.connect("doctree-read", set_alternative_texts, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
