"""What every test of the assignments reads: the sources, the released notebooks, the answers."""

import importlib.util
from pathlib import Path

import nbformat
import pytest

from assignments.course import SOURCE
from assignments.intake.notebooks import read
from assignments.release import release

ANSWERS = Path(__file__).with_name("answers")
SEED = 2027
NAMES = sorted(path.stem for path in SOURCE.glob("*/*.ipynb"))


def source(name: str) -> nbformat.NotebookNode:
    return nbformat.read(SOURCE / name / f"{name}.ipynb", as_version=4)


def answers(name: str):
    """The module with an assignment's MISTAKES and RIGHT; its name is none that Python imports."""
    spec = importlib.util.spec_from_file_location("answers", ANSWERS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def released(tmp_path_factory) -> Path:
    """The folder that `make assignments` fills."""
    folder = tmp_path_factory.mktemp("release")
    release(folder / "assignments", folder / "course", SEED)
    return folder / "assignments"


@pytest.fixture
def student_version(released):
    """Reads a released notebook."""
    return lambda name: nbformat.read(released / f"{name}.ipynb", as_version=4)


@pytest.fixture(scope="session")
def releases(released):
    return {name: nbformat.read(released / f"{name}.ipynb", as_version=4) for name in NAMES}


@pytest.fixture
def handed_in(releases):
    """A released notebook as it comes back."""
    return lambda name=NAMES[0]: read(nbformat.writes(releases[name]).encode())
