"""Pack what grades an assignment here, so that it grades the same elsewhere.

A bundle holds the assignment with its hidden tests and none of its solutions, the code that
`make grade` runs, the package, the lock, and what the platform starts. The same seed and the same
commit make the same bytes.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from assignments.course import ROOT, SOURCE, cell_name, is_test
from tools.zips import write_zip

ENTRY = Path(__file__).with_name("entry")
PLATFORMS = sorted(path.name for path in ENTRY.iterdir() if path.is_dir())
LARGEST = 10 * 2**20  # bytes that Classroom 50 fetches
SINGLE = ["LICENSE", "pyproject.toml", "requirements.txt"]
CODE = ["assignments", "src/attention", "tools/published_notebook.py", "tools/repository.py"]
SOLUTION = re.compile(r"(### BEGIN SOLUTION\n).*?([^\n]*### END SOLUTION)", re.DOTALL)


def write_bundle(platform: str, name: str, course: Path, target: Path) -> Path:
    """Write the zip `target/name.zip`.

    Args:
        platform: one of PLATFORMS.
        name: the assignment.
        course: the folder that `make_course` has filled.
        target: an existing folder.

    Raises:
        ValueError: a bundle that the platform would not take, or that would give away a solution.
    """
    notebook = nbformat.read(course / "source" / name / f"{name}.ipynb", as_version=4)
    if platform == "classroom50":
        require_whole_points(name, notebook)
    files = {f"course/{name}/{name}.ipynb": without_solutions(name, notebook).encode()}
    files |= {path: (ROOT / path).read_bytes() for path in [*SINGLE, *code()]}
    for path in [ENTRY / "install.sh", *(ENTRY / platform).iterdir()]:
        files[path.name] = path.read_bytes()
    # Gradescope unpacks it into a folder of its own, an instructor beside other assignments.
    folder = f"{name}/" if platform == "classroom50" else ""
    path = target / f"{name}.zip"
    write_zip(path, {folder + file: files[file] for file in sorted(files)})
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path} has more than {LARGEST} bytes, which Classroom 50 does not fetch")
    return path


def code() -> Iterator[str]:
    """The files of the package and of what grades."""
    for name in CODE:
        path = ROOT / name
        for file in path.rglob("*") if path.is_dir() else [path]:
            inside = file.relative_to(ROOT)
            made = any(part.startswith((".", "__pycache__")) for part in inside.parts)
            apart = file.is_relative_to(SOURCE) or file.is_relative_to(ENTRY)
            if file.is_file() and not made and not apart:
                yield inside.as_posix()


def without_solutions(name: str, notebook: NotebookNode) -> str:
    """The notebook's text with nothing between the marks; nbgrader puts the same stubs there."""
    for index, cell in enumerate(notebook.cells):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source, found = SOLUTION.subn(r"\1\2", cell.source)
            if not found:
                raise ValueError(
                    f"{name}.ipynb: {cell_name(notebook, index)} is an answer without the lines "
                    "### BEGIN SOLUTION and ### END SOLUTION, so that its solution would be in the "
                    "bundle. Put them around it."
                )
    return nbformat.writes(notebook) + "\n"


def require_whole_points(name: str, notebook: NotebookNode) -> None:
    for cell in filter(is_test, notebook.cells):
        if cell.metadata.nbgrader.points % 1:
            raise ValueError(
                f"{name}.ipynb: `{cell.metadata.nbgrader.grade_id}` has "
                f"{cell.metadata.nbgrader.points} points, and Classroom 50 takes whole ones. "
                "Double the points of all tests, or write one for gradescope."
            )
