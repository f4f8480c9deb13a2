"""Which repository the book is built from: its address is in no file, so that a fork publishes
itself.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GITHUB = "https://github.com"
OWNER_AND_NAME = r"(?P<owner>[\w-]+)/(?P<name>[\w.-]+?)"
# https://github.com/o/n.git, ssh://git@github.com/o/n (port 443 is at ssh.github.com), and scp's
# git@github.com:o/n. A path and another host match none of them.
ORIGIN = re.compile(
    r"(?:(?:https?|git)://(?:[^@/]+@)?(?:www\.)?github\.com(?::\d+)?/"
    r"|ssh://(?:[^@/]+@)?(?:ssh\.)?github\.com(?::\d+)?/"
    r"|(?:[^@/:]+@)?github\.com:/?)" + OWNER_AND_NAME + r"(?:\.git)?/?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Repository:
    """A repository on GitHub, and the commit of it that is built."""

    server: str  # https://github.com
    owner: str
    name: str
    branch: str  # what edit links and nbgitpuller follow
    commit: str  # the source's full hash, which the server has
    site: str  # the address of the published pages, ends in "/"
    published: bool  # the branch `published`, which holds the notebooks for Colab, is there

    @property
    def url(self) -> str:
        return f"{self.server}/{self.owner}/{self.name}"


def find_repository(root: Path, environment: Mapping[str, str] = os.environ) -> Repository | None:
    """The repository that GitHub Actions names in the environment, else the checkout's `origin`.

    Args:
        root: the folder of the checkout; it need not be one.
        environment: GITHUB_REPOSITORY, GITHUB_SERVER_URL, GITHUB_SHA, GITHUB_HEAD_REF,
            GITHUB_REF_NAME, GITHUB_REF and BOOK_URL are read. An empty value counts as none.

    Returns:
        None where neither names a repository on GitHub that has the commit. Links would be dead.

    Raises:
        ValueError: GITHUB_REPOSITORY is not of the form owner/name, or no commit goes with it.
    """
    if environment.get("GITHUB_REPOSITORY"):
        return from_actions(root, environment)
    return from_origin(root, environment)


def from_actions(root: Path, environment: Mapping[str, str]) -> Repository:
    named = re.fullmatch(OWNER_AND_NAME, environment["GITHUB_REPOSITORY"])
    if named is None:
        raise ValueError(
            f"GITHUB_REPOSITORY is {environment['GITHUB_REPOSITORY']!r}, which is not of the form "
            "owner/name. Mend it, or unset it to use the checkout's origin."
        )
    commit = environment.get("GITHUB_SHA") or git(root, "rev-parse", "HEAD")
    if not commit:
        raise ValueError(
            f"GITHUB_REPOSITORY is {environment['GITHUB_REPOSITORY']!r}, but there is no commit to "
            "link to: set GITHUB_SHA to its full hash, or build from a git checkout."
        )
    ref = re.sub("^refs/(heads|tags)/", "", environment.get("GITHUB_REF", ""))
    head, name = environment.get("GITHUB_HEAD_REF"), environment.get("GITHUB_REF_NAME")
    return Repository(
        server=(environment.get("GITHUB_SERVER_URL") or GITHUB).rstrip("/"),
        owner=named["owner"],
        name=named["name"],
        branch=head or name or ref or git(root, "branch", "--show-current") or "main",
        commit=commit,
        site=site(environment, **named.groupdict()),
        published=True,  # the workflow that deploys the pages pushes it
    )


def from_origin(root: Path, environment: Mapping[str, str]) -> Repository | None:
    named = ORIGIN.fullmatch(git(root, "remote", "get-url", "origin"))
    if named is None:
        return None
    # Only what was pushed can be linked to, as far as the last fetch or push tells.
    branch = git(root, "branch", "--show-current")
    if not known(root, branch):
        head = git(root, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
        branch = head.removeprefix("origin/") or "main"
    if git(root, "for-each-ref", "--contains", "HEAD", "--count=1", "refs/remotes/origin"):
        commit = git(root, "rev-parse", "HEAD")
    else:
        commit = git(root, "merge-base", "HEAD", f"refs/remotes/origin/{branch}")
    if not commit:
        return None
    return Repository(
        server=GITHUB,
        owner=named["owner"],
        name=named["name"],
        branch=branch,
        commit=commit,
        site=site(environment, **named.groupdict()),
        published=known(root, "published"),
    )


def known(root: Path, branch: str) -> bool:
    return bool(git(root, "rev-parse", "--verify", "--quiet", f"refs/remotes/origin/{branch}"))


def site(environment: Mapping[str, str], owner: str, name: str) -> str:
    """BOOK_URL, which the workflow takes from GitHub Pages, else where Pages puts a repository."""
    pages = f"{owner.lower()}.github.io"
    folder = "" if name.lower() == pages else f"{name}/"
    return (environment.get("BOOK_URL") or f"https://{pages}/{folder}").rstrip("/") + "/"


def git(root: Path, *arguments: str) -> str:
    """What git prints about the checkout at `root`; nothing where it fails, where git is missing,
    and where `root` is a plain folder inside somebody else's checkout.
    """
    if not (root / ".git").exists():
        return ""
    try:
        run = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


if __name__ == "__main__":  # `make book` builds every page again where this line is another one
    print(find_repository(Path.cwd()), os.environ.get("BOOK_URL"), os.environ.get("JUPYTERHUB_URL"))
