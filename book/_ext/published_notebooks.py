"""The notebooks as the book offers them: beside the pages, each knowing where it was published.

A notebook in the repository names no address. The copies in `notebooks/` carry the repository and
the commit that the pages were built from, so that one on its own, as in Colab, can install the
package that belongs to it. They are what the pages let readers download, and what the workflow that
deploys the pages pushes to the branch `published`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from sphinx.application import Sphinx

from repository import Repository, find_repository

FOLDER = "notebooks"
EMPTY = 'PUBLISHED = ""\n'


def published_notebook(text: str, repository: Repository) -> str:
    """The notebook with the repository and its commit in the line of the setup cell that asks for
    them.

    Args:
        text: the notebook's JSON. Nothing else in it changes.
        repository: where the notebook's package can be installed from.

    Raises:
        ValueError: the line `PUBLISHED = ""` is not in the notebook exactly once.
    """
    empty = json.dumps(EMPTY)
    if (found := text.count(empty)) != 1:
        raise ValueError(
            f"a notebook has the line {EMPTY.strip()} once, in the setup cell, and this one has it "
            f"{found} times. Copy the cell from another chapter."
        )
    return text.replace(empty, json.dumps(f'PUBLISHED = "{repository.url}@{repository.commit}"\n'))


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    repository = find_repository(Path(app.srcdir).parent)
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
