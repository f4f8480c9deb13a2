"""A book leads to the repository it was built from, everywhere, and nowhere else."""

import json
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from book._ext.launch import ways_to_run, ways_to_take_along, ways_to_the_source
from tools.published_notebook import published_notebook
from tools.repository import Repository, find_repository

pytestmark = pytest.mark.builds

BOOK = Path(__file__).parents[2] / "book"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = Repository(
    server="https://github.com",
    owner="someone",
    name="fork",
    branch="main",
    commit=COMMIT,
    site="https://someone.github.io/fork/",
    published=True,
)
NOTEBOOK = "book/05-masking.ipynb"
PAGES = sorted(path for path in BOOK.iterdir() if path.suffix in (".ipynb", ".md"))
NOTEBOOKS = [path for path in PAGES if path.suffix == ".ipynb"]

# An address at any of the hosts that know repositories: who owns it and its name.
OWNERS = re.compile(
    r"(?:github\.com|githubusercontent\.com|research\.google\.com/github|mybinder\.org/v2/gh)"
    r"(?:/|%2F)([\w.-]+?)(?:/|%2F)([\w.-]+?)(?=[/\"'?@#&\\\s<]|%2F|$)",
    re.IGNORECASE,
)


# Whose contract the guide cites.
CITED = {("foundation50", "classroom50")}


def owners(folder):
    """Who is named in the addresses of the pages, the notebooks and what tells robots of them."""
    named = {
        found.groups()
        for path in folder.rglob("*")
        if path.suffix in (".html", ".ipynb", ".xml", ".txt") and "_static" not in path.parts
        for found in OWNERS.finditer(path.read_text("utf-8"))
    }
    return named - CITED


def links(page):
    """The links of the page's menu: where each of them leads, by its words."""
    menu = re.search(r'<details class="launch">.*?</details>', page.read_text("utf-8"), re.DOTALL)
    return {
        words: unescape(address)
        for address, words in re.findall(
            r'<a href="([^"]*)"[^>]*>([^<]*)</a>', menu[0] if menu else ""
        )
    }


def test_every_way_to_run_a_notebook():
    assert dict(ways_to_run(NOTEBOOK, REPOSITORY, "https://hub.example.edu/")) == {
        "Open in Colab": (
            "https://colab.research.google.com/github/someone/fork/blob/published/05-masking.ipynb"
        ),
        "Open in Binder": (
            f"https://mybinder.org/v2/gh/someone/fork/{COMMIT}?urlpath=lab/tree/{NOTEBOOK}"
        ),
        "Open in JupyterHub": (
            "https://hub.example.edu/hub/user-redirect/git-pull"
            "?repo=https%3A%2F%2Fgithub.com%2Fsomeone%2Ffork&branch=main"
            "&urlpath=lab%2Ftree%2Ffork%2Fbook%2F05-masking.ipynb"
        ),
    }


@pytest.mark.parametrize(
    ("changes", "hub", "offered"),
    [
        ({}, "", ["Open in Colab", "Open in Binder"]),
        ({"published": False}, "", ["Open in Binder"]),
        ({"server": "https://git.example.org"}, "", []),
        ({"server": "https://git.example.org"}, "https://hub.example.edu", ["Open in JupyterHub"]),
    ],
)
def test_only_a_way_that_leads_there_is_offered(changes, hub, offered):
    ways = ways_to_run(NOTEBOOK, replace(REPOSITORY, **changes), hub)
    assert [words for words, _ in ways] == offered


def test_the_source_is_seen_at_its_commit_and_edited_on_its_branch():
    repository = replace(REPOSITORY, branch="what/if #2")
    title = "Projecting to Q & K"
    assert dict(ways_to_the_source(NOTEBOOK, title, repository)) == {
        "See the source": f"https://github.com/someone/fork/blob/{COMMIT}/{NOTEBOOK}",
        "Suggest an edit": f"https://github.com/someone/fork/edit/what/if%20%232/{NOTEBOOK}",
        "Report a mistake": (
            "https://github.com/someone/fork/issues/new?title=Projecting%20to%20Q%20%26%20K%3A%20"
        ),
    }


def test_without_a_repository_there_is_no_way():
    assert ways_to_run(NOTEBOOK, None, "https://hub.example.edu") == []
    assert ways_to_the_source(NOTEBOOK, "Masking", None) == []
    assert ways_to_take_along(None) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_published_notebook_knows_its_commit_and_is_otherwise_the_same(path):
    source = path.read_text("utf-8")
    published = published_notebook(source, REPOSITORY)
    line = f'PUBLISHED = "https://github.com/someone/fork@{COMMIT}"'
    assert published.replace(json.dumps(line)[1:-1], json.dumps('PUBLISHED = ""')[1:-1]) == source
    [setup] = [cell for cell in json.loads(published)["cells"] if cell.get("id") == "setup"]
    assert "".join(setup["source"]).splitlines().count(line) == 1


@pytest.mark.parametrize("times", [0, 2])
def test_a_notebook_that_cannot_be_published_is_refused(times):
    text = json.dumps({"cells": [{"source": ['PUBLISHED = ""\n'] * times}]})
    with pytest.raises(ValueError, match=f"has it {times} times"):
        published_notebook(text, REPOSITORY)


def test_a_fork_leads_to_itself(fork_site):
    assert owners(fork_site) == {("someone", "fork")}
    assert links(fork_site / "search.html") == {}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_of_a_fork_has_its_menu(fork_site, path):
    found = links(fork_site / f"{path.stem}.html")
    of_notebooks = [
        "Open in Colab",
        "Open in Binder",
        "Open in JupyterHub",
        "Download the notebook",
    ]
    of_all = ["See the source", "Suggest an edit", "Report a mistake"]
    whole = [
        "Download the book as a PDF",
        "Download the book as an EPUB",
        "Download the book to read offline",
        "Show the slides of a chapter",
    ]
    expected = of_notebooks if path in NOTEBOOKS else []
    assert list(found) == expected + (whole if path.stem == "index" else []) + of_all
    source = f"/book/{path.name}"
    assert found["See the source"].endswith(f"/blob/{COMMIT}{source}")
    assert found["Suggest an edit"].endswith(f"/edit/main{source}")
    [title] = parse_qs(urlsplit(found["Report a mistake"]).query)["title"]
    assert f"<h1>{title.removesuffix(': ')}<" in (fork_site / f"{path.stem}.html").read_text(
        "utf-8"
    )
    if path in NOTEBOOKS:
        assert found["Open in Colab"].endswith(f"/blob/published/{path.name}")
        assert found["Open in Binder"].endswith(f"{COMMIT}?urlpath=lab/tree{source}")
        published = fork_site / found["Download the notebook"]
        assert published.read_text("utf-8") == published_notebook(
            path.read_text("utf-8"), REPOSITORY
        )


@pytest.mark.everything
def test_nothing_of_a_fork_stays_where_there_is_no_repository(fork_site, build, tmp_path):
    """The same folder, built again outside of any checkout. The pages keep their address: a change
    of it alone would make Sphinx write them again.
    """
    shutil.copytree(fork_site.parents[1], tmp_path / "fork")
    html = build(tmp_path / "fork", GIT_DIR="/nowhere", BOOK_URL=REPOSITORY.site)
    assert owners(html) == set()
    for path in PAGES:
        page = html / f"{path.stem}.html"
        if path in NOTEBOOKS:
            assert links(page) == {
                "Download the notebook": f"notebooks/{path.name}",
                "How to run it": f"{'' if path.stem == 'index' else 'index.html'}#run-it",
            }
            assert "Publish your own copy" in page.read_text("utf-8"), "how to get the others"
            assert (html / "notebooks" / path.name).read_text("utf-8") == path.read_text("utf-8")
        else:
            assert links(page) == {}


def test_the_built_pages_lead_to_the_repository_they_were_built_from(html_folder):
    repository = find_repository(BOOK.parent)
    assert owners(html_folder) <= ({(repository.owner, repository.name)} if repository else set())


def open_menus(page):
    return page.locator("details.launch[open]").count()


@pytest.mark.parametrize("javascript", [True, False])
def test_the_menu_opens_and_closes(visit, site, javascript):
    with visit(f"{site}/05-masking.html", java_script_enabled=javascript) as v:
        summary = v.page.locator("details.launch > summary")
        assert summary.text_content() == "Run this page"
        for _ in range(2):
            summary.focus()
            v.page.keyboard.press("Enter")
            assert open_menus(v.page) == 1
            summary.click()
            assert open_menus(v.page) == 0
        v.assert_no_trouble()


def test_escape_a_click_outside_and_leaving_it_close_the_menu(visit, site):
    with visit(f"{site}/05-masking.html", width=360, has_touch=True) as v:
        summary = v.page.locator("details.launch > summary")
        inside = v.page.locator("details.launch a").first
        summary.tap()
        inside.focus()
        assert open_menus(v.page) == 1
        v.page.keyboard.press("Escape")
        assert open_menus(v.page) == 0
        assert summary.evaluate("element => element === document.activeElement")

        summary.tap()
        v.page.locator(".bd-article h1").tap(position={"x": 5, "y": 5})
        assert open_menus(v.page) == 0

        summary.tap()
        v.page.locator("details.launch a").last.focus()
        v.page.keyboard.press("Tab")
        assert open_menus(v.page) == 0
        v.assert_no_trouble()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_an_open_menu_is_inside_the_window_and_accessible(visit, fork_address, theme, width):
    with visit(f"{fork_address}/05-masking.html", theme=theme, width=width) as v:
        v.page.locator("details.launch > summary").click()
        box = v.page.locator(".launch-menu").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert v.page.evaluate("document.scrollingElement.scrollWidth") <= width
        for link in v.page.locator(".launch-menu a").all():
            assert link.bounding_box()["height"] >= 24, "too low for a finger"
        violations = Axe().run(v.page).response["violations"]
        assert not violations, violations
        v.assert_no_trouble()
