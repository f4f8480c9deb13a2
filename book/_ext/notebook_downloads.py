"""The notebooks as the book offers them: beside the pages, each knowing where it was published.

A notebook in the repository names no address. The copies in `notebooks/` carry the repository and
the commit that the pages were built from, so that one on its own, as in Colab, can install the
package that belongs to it. They are what the pages let readers download, and what the workflow that
deploys the pages pushes to the branch `published`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sphinx.application import Sphinx

from tools.published_notebook import published_notebook

FOLDER = "notebooks"


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    repository = app.config.book_repository
    folder = Path(app.outdir) / FOLDER
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier build
    folder.mkdir()
    for docname in app.env.found_docs:
        source = Path(app.env.doc2path(docname))
        if source.suffix == ".ipynb":
            text = source.read_text("utf-8")
            if repository:
                try:
                    text = published_notebook(text, repository)
                except ValueError as error:
                    raise ValueError(f"{source.name}: {error}") from None
            (folder / source.name).write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("build-finished", write_notebooks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
