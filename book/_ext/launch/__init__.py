"""A menu on every page: where to run its notebook, and how to see, mend or question its source.

Every address is made of the repository that the book is built from, so a fork's pages lead to the
fork. Without one the menu offers the notebook itself and says how the other ways come about.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, urlencode

from sphinx.application import Sphinx

from book._ext.notebook_downloads import FOLDER
from book._ext.own_files import OVER_THE_THEME, add_own_files
from tools.formats import FORMATS
from tools.repository import GITHUB, Repository

Links = list[tuple[str, str]]  # what a link says, and where it leads


def ways_to_run(source: str, repository: Repository | None, hub: str = "") -> Links:
    """Where the notebook `source` of the book can be opened: hosts that are known to have it.

    Args:
        source: the notebook's path in the repository, such as book/05-masking.ipynb.
        repository: where the notebook is; None for a book that no repository is known for.
        hub: the address of a JupyterHub with nbgitpuller, such as that of a campus; "" for none.
    """
    links = []
    if repository and repository.server == GITHUB:  # the two know no other server
        place = f"{repository.owner}/{repository.name}"
        if repository.published:
            page = source.rsplit("/", 1)[-1]
            address = f"https://colab.research.google.com/github/{place}/blob/published/{page}"
            links.append(("Open in Colab", address))
        address = f"https://mybinder.org/v2/gh/{place}/{repository.commit}?urlpath=lab/tree/"
        links.append(("Open in Binder", address + source))
    if repository and hub:
        values = {
            "repo": repository.url,
            "branch": repository.branch,
            "urlpath": f"lab/tree/{repository.name}/{source}",
        }
        query = urlencode(values, quote_via=quote, safe="")
        address = f"{hub.rstrip('/')}/hub/user-redirect/git-pull?{query}"
        links.append(("Open in JupyterHub", address))
    return links


def ways_to_the_source(source: str, title: str, repository: Repository | None) -> Links:
    """The page's source as it was built, an editor on its branch, and a place to tell a mistake."""
    if repository is None:
        return []
    query = urlencode({"title": f"{title}: "}, quote_via=quote)
    return [
        ("See the source", f"{repository.url}/blob/{repository.commit}/{source}"),
        ("Suggest an edit", f"{repository.url}/edit/{quote(repository.branch)}/{source}"),
        ("Report a mistake", f"{repository.url}/issues/new?{query}"),
    ]


def ways_to_take_along(repository: Repository | None) -> Links:
    """The whole book in other forms, which are published beside the pages."""
    if repository is None or not repository.published:
        return []
    return [(each.words, f"{repository.site}{each.address}") for each in FORMATS]


def add_menu(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    if doctree is None:  # the search page, the page for a wrong address
        return
    repository, hub = app.config.book_repository, app.config.book_hub
    path = Path(app.env.doc2path(pagename))
    source = path.relative_to(Path(app.srcdir).parent).as_posix()
    title = app.env.titles[pagename].astext()
    if path.suffix == ".ipynb":
        context["launch_run"] = ways_to_run(source, repository, hub)
        context["launch_download"] = context["pathto"](f"{FOLDER}/{path.name}", 1)
    if pagename == app.config.root_doc:
        context["launch_book"] = ways_to_take_along(repository)
    context["launch_source"] = ways_to_the_source(source, title, repository)


def find_hub(app: Sphinx, config) -> None:
    config.book_hub = os.environ.get("JUPYTERHUB_URL", "")


def setup(app: Sphinx) -> dict[str, object]:
    add_own_files(app, __file__, "launch/launch.css", OVER_THE_THEME)
    # "html": where it changed, every page is written again, with the links of now.
    app.add_config_value("book_hub", "", "html", types=[str])
    app.connect("config-inited", find_hub)
    app.connect("html-page-context", add_menu)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
