"""The forms of the whole book: in the menu, beside the published pages, in the Makefile."""

import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from book._ext.launch import ways_to_take_along
from tools import epub
from tools.built_pages import Book
from tools.epub import write_epub
from tools.formats import FORMATS, put_together
from tools.offline import write_offline
from tools.pdf import write_pdf
from tools.repository import Repository
from tools.slides.__main__ import write_slides

ROOT = Path(__file__).resolve().parents[2]
SITE = "https://someone.github.io/fork/"
REPOSITORY = Repository(
    server="https://github.com",
    owner="someone",
    name="fork",
    branch="main",
    commit="0" * 40,
    site=SITE,
    published=True,
)


@pytest.fixture
def built(tmp_path):
    """What `make formats` finds: pages, and each form in the folder around them."""
    for name in ("html/index.html", *(each.address for each in FORMATS)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_the_menu_leads_to_what_is_put_beside_the_pages(built):
    put_together(built / "html", built / "published")
    put_together(built / "html", built / "published")  # over the one before
    links = ways_to_take_along(REPOSITORY)
    assert len(links) == len(FORMATS) == 4
    for words, address in links:
        assert words and (built / "published" / address.removeprefix(SITE)).is_file()
    assert (built / "published" / "index.html").is_file()
    assert ways_to_take_along(replace(REPOSITORY, published=False)) == []


def test_a_form_that_was_not_written_stops_the_publishing(built):
    (built / FORMATS[0].address).unlink()
    with pytest.raises(FileNotFoundError):
        put_together(built / "html", built / "published")


@pytest.mark.parametrize("write", [write_pdf, write_epub, write_offline, write_slides])
def test_without_pages_each_says_how_to_get_them(write, tmp_path):
    with pytest.raises(FileNotFoundError, match="run `make book` first"):
        write(tmp_path, tmp_path / "written")


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.module)
def test_each_has_a_target_of_its_own_which_builds_the_book_before(each):
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--always-make", each.module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    *before, last = done.stdout.splitlines()
    assert last.endswith(f"/python -m tools.{each.module}")
    assert any("jupyter-book build" in line for line in before)


def test_the_workflow_publishes_what_is_put_together():
    workflow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text("utf-8"))
    steps = workflow["jobs"]["build"]["steps"]
    assert "make formats" in [step.get("run") for step in steps]
    [pages] = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    assert pages["with"]["path"] == "_build/published"


@pytest.fixture
def nine_hours_ahead(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


def test_an_epub_has_the_time_of_its_commit_wherever_it_is_built(
    nine_hours_ahead, monkeypatch, tmp_path
):
    monkeypatch.setattr(epub, "git", lambda *_: "1795413600")
    text = epub.package(Book(tmp_path, "Heads", "en", SITE, []), {}, [])
    assert re.findall(r"modified\">(.*?)<", text) == ["2026-11-23T06:00:00Z"]
