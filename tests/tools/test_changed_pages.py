"""The list of changed pages that a preview shows."""

import subprocess

from tools.changed_pages import changed_files, listed


def test_pages_are_named_and_what_all_share_is_told():
    text = listed(["book/05-masking.ipynb", "book/glossary.md", "tests/conftest.py", "README.md"])
    assert text == "- `05-masking.html`\n- `glossary.html`"
    text = listed(["book/_ext/book_style/static/book_style/book.css", "_toc.yml"])
    assert text.splitlines()[0] == "- no page's own text changed"
    assert "every page" in text and "`_toc.yml`" in text and "book.css`" in text


def test_only_what_this_branch_changed_counts(tmp_path, monkeypatch):
    def git(*arguments):
        settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *settings, *arguments], cwd=tmp_path, check=True)

    def commit(name):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-qm", name)

    git("init", "-q", "-b", "main")
    commit("before.md")
    git("switch", "-qc", "branch")
    commit("mine.md")
    git("switch", "-q", "main")
    commit("theirs.md")
    git("switch", "-q", "branch")
    monkeypatch.chdir(tmp_path)
    assert [path for path in changed_files("main") if path] == ["mine.md"]
