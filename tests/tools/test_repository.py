"""The book finds the repository it is built from, and never one that would make a dead link."""

import os
import subprocess

import pytest

from tools.repository import Repository, find_repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ACTIONS = {"GITHUB_REPOSITORY": "Someone/fork", "GITHUB_SHA": COMMIT, "GITHUB_REF_NAME": "main"}
ORIGIN = "https://github.com/Someone/fork.git"


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Runs git in a checkout with one commit, cloned from a bare repository beside it."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # a hook's, which name another checkout
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A Reader")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "reader@example.invalid")

    def run(*arguments, folder=tmp_path / "checkout"):
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    run("init", "--quiet", "--bare", "--initial-branch=main", "server", folder=tmp_path)
    run("init", "--quiet", "--initial-branch=main", "checkout", folder=tmp_path)
    commit(run, "first")
    run("remote", "add", "origin", str(tmp_path / "server"))
    run("push", "--quiet", "origin", "main")
    run("remote", "set-url", "origin", ORIGIN)  # what follows is about its name alone
    return run


def commit(git, message):
    git("commit", "--quiet", "--allow-empty", "--message", message)
    return git("rev-parse", "HEAD")


def test_the_environment_tells_everything(tmp_path):
    found = find_repository(tmp_path, ACTIONS)
    assert found == Repository(
        server="https://github.com",
        owner="Someone",
        name="fork",
        branch="main",
        commit=COMMIT,
        site="https://someone.github.io/fork/",
        published=True,
    )
    assert found.url == "https://github.com/Someone/fork"


def test_the_environment_counts_before_the_checkout(git, tmp_path):
    git("remote", "set-url", "origin", "https://github.com/another/book")
    assert find_repository(tmp_path / "checkout", ACTIONS).owner == "Someone"


@pytest.mark.parametrize(
    ("variables", "branch"),
    [
        ({"GITHUB_HEAD_REF": "topic", "GITHUB_REF_NAME": "7/merge"}, "topic"),
        ({"GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "topic"}, "topic"),
        ({"GITHUB_REF_NAME": "", "GITHUB_REF": "refs/heads/a/topic"}, "a/topic"),
        ({"GITHUB_REF_NAME": "", "GITHUB_REF": "refs/tags/v1"}, "v1"),
        ({"GITHUB_REF_NAME": ""}, "the-checkouts"),
    ],
)
def test_the_branch_that_is_built(git, tmp_path, variables, branch):
    git("checkout", "--quiet", "-b", "the-checkouts")
    assert find_repository(tmp_path / "checkout", ACTIONS | variables).branch == branch


def test_without_a_checkout_the_branch_is_main(tmp_path):
    assert find_repository(tmp_path, ACTIONS | {"GITHUB_REF_NAME": ""}).branch == "main"


def test_the_checkout_tells_the_commit_that_the_environment_leaves_out(git, tmp_path):
    head = git("rev-parse", "HEAD")
    assert find_repository(tmp_path / "checkout", ACTIONS | {"GITHUB_SHA": ""}).commit == head


def test_another_server(tmp_path):
    variables = {"GITHUB_SERVER_URL": "https://git.example.org/"}
    assert find_repository(tmp_path, ACTIONS | variables).url == (
        "https://git.example.org/Someone/fork"
    )


@pytest.mark.parametrize(
    ("variables", "site"),
    [
        ({"BOOK_URL": "https://book.example.org"}, "https://book.example.org/"),
        ({"BOOK_URL": ""}, "https://someone.github.io/fork/"),
        ({"GITHUB_REPOSITORY": "Someone/Someone.github.io"}, "https://someone.github.io/"),
    ],
)
def test_the_address_of_the_pages(tmp_path, variables, site):
    assert find_repository(tmp_path, ACTIONS | variables).site == site


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"GITHUB_REPOSITORY": "fork"}, "'fork', which is not of the form owner/name"),
        ({"GITHUB_REPOSITORY": "a/b/c"}, "'a/b/c', which is not of the form owner/name"),
        ({"GITHUB_SHA": ""}, "set GITHUB_SHA to its full hash"),
    ],
)
def test_an_environment_that_tells_half_is_refused(tmp_path, variables, reason):
    with pytest.raises(ValueError, match=reason):
        find_repository(tmp_path, ACTIONS | variables)


@pytest.mark.parametrize(
    "origin",
    [
        "https://github.com/Someone/fork",
        "https://github.com/Someone/fork.git",
        "https://github.com/Someone/fork/",
        "https://reader:secret@github.com/Someone/fork.git",
        "ssh://git@github.com/Someone/fork.git",
        "ssh://git@ssh.github.com:443/Someone/fork.git",
        "git@github.com:Someone/fork.git",
        "github.com:Someone/fork",
    ],
)
def test_a_checkout_tells_its_origin(git, tmp_path, origin):
    git("remote", "set-url", "origin", origin)
    assert find_repository(tmp_path / "checkout", {"GITHUB_REPOSITORY": ""}) == Repository(
        server="https://github.com",
        owner="Someone",
        name="fork",
        branch="main",
        commit=git("rev-parse", "HEAD"),
        site="https://someone.github.io/fork/",
        published=False,
    )


@pytest.mark.parametrize(
    "origin",
    [
        "/srv/git/Someone/fork.git",
        "../fork",
        "file:///srv/github.com/Someone/fork",
        "https://gitlab.com/Someone/fork.git",
        "https://github.com.example.org/Someone/fork",
        "git@example.org:github.com/fork",
        "https://github.com/Someone",
    ],
)
def test_an_origin_elsewhere_counts_as_none(git, tmp_path, origin):
    git("remote", "set-url", "origin", origin)
    assert find_repository(tmp_path / "checkout", {}) is None


def test_nothing_set_is_no_repository(git, tmp_path):
    git("remote", "remove", "origin")
    assert find_repository(tmp_path / "checkout", {}) is None
    assert find_repository(tmp_path, {}) is None


def test_a_folder_inside_another_checkout_is_none_of_it(git, tmp_path):
    folder = tmp_path / "checkout" / "attention"
    folder.mkdir()
    assert find_repository(tmp_path / "checkout", {}) is not None
    assert find_repository(folder, {}) is None


def test_a_commit_that_was_not_pushed_is_not_linked_to(git, tmp_path):
    pushed = git("rev-parse", "HEAD")
    commit(git, "second")
    assert find_repository(tmp_path / "checkout", {}).commit == pushed


def test_a_branch_that_was_not_pushed_is_not_linked_to(git, tmp_path):
    pushed = git("rev-parse", "HEAD")
    git("checkout", "--quiet", "-b", "topic")
    commit(git, "second")
    found = find_repository(tmp_path / "checkout", {})
    assert (found.branch, found.commit) == ("main", pushed)
    git("update-ref", "refs/remotes/origin/trunk", pushed)
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert find_repository(tmp_path / "checkout", {}).branch == "trunk"


def test_a_commit_of_another_branch_is_linked_to(git, tmp_path):
    head = commit(git, "second")
    git("update-ref", "refs/remotes/origin/topic", head)
    assert find_repository(tmp_path / "checkout", {}).commit == head


def test_where_nothing_was_pushed_there_is_no_repository(git, tmp_path):
    git("update-ref", "-d", "refs/remotes/origin/main")
    assert find_repository(tmp_path / "checkout", {}) is None


def test_the_checkout_knows_whether_there_are_published_notebooks(git, tmp_path):
    git("update-ref", "refs/remotes/origin/published", "HEAD")
    assert find_repository(tmp_path / "checkout", {}).published
