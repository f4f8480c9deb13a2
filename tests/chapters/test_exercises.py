"""Every chapter ends with exercises: a stub, its check, three hints and a solution that passes.

The stored check speaks about the untouched stub. Here each is run twice, as a reader leaves it and
with the solution in the stub's place; neither needs more of the chapter than its imports.
"""

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from attention.checks import step_matrix
from tools.refresh import chapters

PATHS = [path for path in chapters() if path.stem[:2].isdecimal()]
SECTIONS = ["## Questions", "## Exercises", "## The chapter in five lines"]
# Folded by the browser: JupyterLab folds it too, and shows a dropdown of MyST unfolded.
FOLDED = re.compile(r"<details>\n<summary>([^<]+)</summary>\n\n(.+?)\n\n</details>", re.DOTALL)
CODE = re.compile(r"^```python\n(.+?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Exercise:
    """The cells of one exercise, and those of code above it."""

    problem: NotebookNode
    stub: NotebookNode
    check: NotebookNode
    hints: NotebookNode
    above: list[NotebookNode]

    @property
    def solution(self) -> str:
        *_, (title, text) = FOLDED.findall(self.hints.source)
        assert title == "Solution"
        [code] = CODE.findall(text)
        return code


def exercises(path: Path) -> list[Exercise]:
    cells = nbformat.read(path, as_version=4).cells
    return [
        Exercise(*cells[at - 1 : at + 3], [c for c in cells[:at] if c.cell_type == "code"])
        for at, cell in enumerate(cells)
        if "exercise" in cell.metadata.get("tags", [])
    ]


def defined(source: str) -> set[str]:
    """The functions and classes that a cell defines."""
    definitions = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.parse(source).body if isinstance(node, definitions)}


def verdict(exercise: Exercise, answer: str):
    """What the check's cell shows, run after the imports above it and the answer."""
    trees = [ast.parse(cell.source).body for cell in exercise.above]
    imports = [
        node for tree in trees for node in tree if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {"__name__": "__main__"}
    exec(compile(ast.Module(imports, []), "the imports", "exec"), names)
    exec(answer, names)
    *statements, shown = ast.parse(exercise.check.source).body
    exec(compile(ast.Module(statements, []), "the check", "exec"), names)
    return eval(compile(ast.Expression(shown.value), "the check", "eval"), names)


ALL = [
    pytest.param(exercise, id=f"{path.stem[:2]}-{number}")
    for path in PATHS
    for number, exercise in enumerate(exercises(path), start=1)
]
each = pytest.mark.parametrize("exercise", ALL)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_chapter_ends_with_one_or_two(path):
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert re.findall(r"^## .+$", text, re.MULTILINE)[-3:] == SECTIONS
    assert len(exercises(path)) in (1, 2)


def test_there_are_chapters_to_look_at():
    chapters = re.findall(
        r"file: (\d\d-\S+)", (PATHS[0].parents[1] / "_toc.yml").read_text("utf-8")
    )
    assert [path.stem for path in PATHS] == chapters


@each
def test_it_has_its_parts_in_order(exercise):
    kinds = [cell.cell_type for cell in vars(exercise).values() if isinstance(cell, NotebookNode)]
    assert kinds == ["markdown", "code", "code", "markdown"]
    assert len(re.findall(r"^### .+$", exercise.problem.source, re.MULTILINE)) == 1
    titles = [title for title, _ in FOLDED.findall(exercise.hints.source)]
    assert titles == ["Hint 1", "Hint 2", "Hint 3", "Solution"]
    assert FOLDED.sub("", exercise.hints.source).strip() == "", "something stands between the folds"


@each
def test_its_names_are_its_own(exercise):
    """A stub with a name of the chapter's would break whoever runs the cells above once more."""
    names = defined(exercise.stub.source)
    assert names
    assert names == defined(exercise.solution)
    taken = "\n".join(cell.source for cell in exercise.above)
    assert not [name for name in names if re.search(rf"\b{name}\b", taken)]


@each
def test_the_stub_is_untouched_and_the_check_says_so(exercise):
    for node in ast.walk(ast.parse(exercise.stub.source)):
        if isinstance(node, ast.FunctionDef):
            assert all(isinstance(line, ast.Expr) for line in node.body), "there is code in it"
    assert "# Your code." in exercise.stub.source
    [output] = exercise.check.outputs
    stored = output.data["text/plain"]
    assert re.match(r"check_\w+: not yet\.\n", stored)
    result = verdict(exercise, exercise.stub.source)
    assert not result.passed
    assert repr(result) == stored


@each
def test_with_the_solution_the_check_passes(exercise):
    result = verdict(exercise, exercise.solution)
    assert result.passed, repr(result)


def test_the_messages_about_a_step_call_the_angle_as_its_hints_do():
    [exercise] = [e for e in exercises(PATHS[0]) if "step_matrix" in defined(e.stub.source)]
    rows = tomllib.loads(Path(step_matrix.__file__).with_suffix(".toml").read_text("utf-8"))
    as_code = re.sub(r"(sin|cos) (\w)", r"\1(\2)", rows["RIGHT_BLOCK"].strip("`"))
    assert as_code in exercise.hints.source
    angle = re.search(r"sin\((\w)\)", as_code)[1]
    assert rows["RIGHT_ANGLE"].startswith(f"`{angle} = ")
