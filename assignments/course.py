"""The course as nbgrader wants it: the source notebooks with a class's seed, and what it makes."""

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from assignments.errors import GradingError
from tools.published_notebook import published_notebook
from tools.repository import find_repository

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "assignments" / "source"

SEED_CELL = "class-seed"
LARGEST_SEED = 2**63 - 1  # what torch and SQLite take
SEED = re.compile(r"^CLASS_SEED = (\d+)", re.MULTILINE)
HEADING = re.compile(r"^(#+) (.+?)(?: \(\d+ points?\))?$", re.MULTILINE)


def settings(root: Path) -> Config:
    """Where nbgrader finds the course and its gradebook."""
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.course_id = "attention"
    config.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}"
    return config


def make_course(root: Path, seed: int, source: Path = SOURCE) -> tuple[list[str], str]:
    """Write a class's sources and, by nbgrader, its release notebooks and its gradebook.

    Args:
        root: the course's folder; `source` and `release` in it are written again, the gradebook is
            brought up to date.
        seed: the class's own, from which every number of the assignments is drawn.
        source: the folder of the assignments, each `name/name.ipynb`.

    Returns:
        The names of the assignments, and the address that the notebooks install the package from,
        empty where no repository on GitHub is known.

    Raises:
        GradingError: a source notebook that is not as it must be, or that nbgrader refuses.
    """
    found = [path.stem for path in source.glob("*/*.ipynb") if path.stem == path.parent.name]
    names = sorted(found, key=lambda name: (len(name.partition("-")[0]), name))  # 10 after 9
    if not names:
        raise GradingError(f"there are no assignments in {source}")
    repository = find_repository(ROOT)
    for folder in ("source", "release"):
        shutil.rmtree(root / folder, ignore_errors=True)
    for name in names:
        text = (source / name / f"{name}.ipynb").read_text("utf-8")
        try:
            text = published_notebook(text, repository) if repository else text
            text = nbformat.writes(with_seed(nbformat.reads(text, as_version=4), seed))
        except ValueError as error:
            raise GradingError(f"{name}.ipynb: {error}") from None
        (root / "source" / name).mkdir(parents=True)
        (root / "source" / name / f"{name}.ipynb").write_text(text, "utf-8")
        generate(root, name)
    return names, f"{repository.url}@{repository.commit}" if repository else ""


def generate(root: Path, name: str) -> None:
    """Make the release notebook of `source/name` in the course's folder, by nbgrader.

    Raises:
        GradingError: nbgrader refuses it.
    """
    # nbgrader starts alembic by its name alone
    if (programs := str(Path(sys.executable).parent)) not in os.get_exec_path():
        os.environ["PATH"] = os.pathsep.join([programs, os.environ["PATH"]])
    config = settings(root)
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    made = api.generate_assignment(name)
    if not made["success"]:
        raise GradingError(
            f"nbgrader refuses {name}. Where its cells have other names than when it was "
            f"last graded, move {root} away first.\n{made.get('log')}\n{made.get('error', '')}"
        )
    path = root / "release" / name / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    path.write_text(nbformat.writes(notebook) + "\n", "utf-8")


def with_seed(notebook: NotebookNode, seed: int) -> NotebookNode:
    """The notebook with the class's seed in the cell that is there for it. It is changed."""
    for cell in notebook.cells:
        if grade_id(cell) == SEED_CELL and len(SEED.findall(cell.source)) == 1:
            cell.source = SEED.sub(f"CLASS_SEED = {seed}", cell.source)
            return notebook
    raise ValueError(f"it has no cell {SEED_CELL} with one line CLASS_SEED = 0")


def grade_id(cell: NotebookNode) -> str | None:
    """nbgrader's name of a cell, None where it has none."""
    named = cell.metadata.get("nbgrader")
    name = named.get("grade_id") if isinstance(named, dict) else None
    return name if isinstance(name, str) else None


def named_cells(notebook: NotebookNode) -> dict[str, NotebookNode]:
    return {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}


def title(notebook: NotebookNode) -> str:
    """What stands above a released notebook."""
    return HEADING.search(notebook.cells[0].source)[2]


def tasks(notebook: NotebookNode) -> dict[str, str]:
    """The task that each of nbgrader's cells belongs to, as the heading above it says."""
    task, found = "", {}
    for cell in notebook.cells:
        heading = HEADING.search(cell.source) if cell.cell_type == "markdown" else None
        if heading:
            task = heading[2]
        if name := grade_id(cell):
            found[name] = task
    return found


def cell_name(notebook: NotebookNode, index: int) -> str:
    """A cell in words: by nbgrader's name, else by its number from 1 on."""
    name = grade_id(notebook.cells[index])
    return f"`{name}`" if name else f"cell {index + 1}"


def is_test(cell: NotebookNode) -> bool:
    about = cell.metadata.get("nbgrader", {})
    return bool(about.get("grade") and about.get("locked"))
