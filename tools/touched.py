"""Which chapters a branch has touched: their own files, or the modules of `attention` they import.

python -m tools.touched         names them, a line each
"""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))
# What every chapter is run with.
SHARED = ("requirements.txt", "pyproject.toml", "conftest.py", "tools/kernels.py")


def changed(root: Path = ROOT) -> set[str] | None:
    """The files that differ from the upstream main, new ones too; None where no such is known."""

    def git(*arguments: str) -> list[str] | None:
        run = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
        return run.stdout.splitlines() if run.returncode == 0 else None

    base = git("merge-base", "HEAD", "origin/HEAD") or git("merge-base", "HEAD", "origin/main")
    if not base:
        return None
    differing = git("diff", "--name-only", *base) or []
    return {*differing, *(git("ls-files", "--others", "--exclude-standard") or [])}


def touched(files: set[str] | None) -> list[Path]:
    """The chapters to run where these files have changed; all where nobody knows which."""
    ours = {file for file in files or () if file.startswith("src/")}
    # A check reads the rows beside it.
    ours = {re.sub(r"(?<=/checks/)(\w+)\.toml$", r"\1.py", file) for file in ours}
    # Weights, what a package hands on, and what is gone: no import leads there.
    unknown = {
        file
        for file in ours
        if not file.endswith((".py", ".js", ".css"))
        or file.endswith("__init__.py")
        or not (ROOT / file).exists()
    }
    if files is None or unknown or files & set(SHARED):
        return CHAPTERS
    rooms = {ROOT / file for file in ours}
    return [
        chapter
        for chapter in CHAPTERS
        if str(chapter.relative_to(ROOT)) in files or rooms & needed(chapter)
    ]


def needed(chapter: Path) -> set[Path]:
    """The files of `attention` that a chapter imports, and those that they import in turn."""
    cells = json.loads(chapter.read_text("utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    found, left = set(), {path for cell in code for path in imported(cell, "")}
    while left:
        path = left.pop()
        found.add(path)
        left |= set(imports_of(path)) - found
    return found


@cache
def imports_of(path: Path) -> tuple[Path, ...]:
    package = ".".join(path.parent.relative_to(SRC).parts)
    return tuple(imported(path.read_text("utf-8"), package))


def imported(code: str, package: str) -> Iterator[Path]:
    """The files that the imports of a piece of code name; what stands in a package is no file."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from filter(None, (file_of(each.name) for each in node.names))
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            module = ".".join([*above * bool(node.level), *filter(None, [node.module])])
            for each in node.names:
                yield from filter(None, [where(module, each.name)])


@cache
def where(module: str, name: str) -> Path | None:
    """The file that a name of a module comes from, behind what packages hand on."""
    file = file_of(module)
    if file is None or file.name != "__init__.py":
        return file
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and any(
            name in (each.asname, each.name) for each in node.names
        ):
            source = node.module or ""
            return where(f"{module}.{source}".rstrip(".") if node.level else source, name)
    return file_of(f"{module}.{name}") or file


def file_of(module: str) -> Path | None:
    place = SRC.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py") if module else ()
    return next((file for file in files if file.exists()), None)


if __name__ == "__main__":
    for chapter in touched(changed()):
        print(chapter.relative_to(ROOT))
