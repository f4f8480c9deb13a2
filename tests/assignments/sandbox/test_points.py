"""Points are earned: a test cell counts by its own run alone, whatever an answer has prepared."""

import asyncio

import nbformat
import pytest
from nbgrader.utils import determine_grade

from assignments import gradebook
from assignments.course import grade_id
from assignments.grade import grade
from assignments.sandbox import client, landlock, run, seccomp
from tests.assignments.submissions import submission

pytestmark = pytest.mark.skipif(
    not (landlock.version() and seccomp.available()), reason="this system has no Landlock"
)
POINTS = 4
HOOKS = {
    "a hook that empties cells": (
        "get_ipython().input_transformers_cleanup.append(lambda lines: [])"
    ),
    "a syntax tree without statements": (
        "class Emptied:\n"
        "    def visit(self, tree):\n"
        "        tree.body = []\n"
        "        return tree\n"
        "get_ipython().ast_transformers.append(Emptied())"
    ),
    "a run_cell of its own": (
        "shell = get_ipython()\n"
        "first = shell.run_cell\n"
        "async def run_cell_async(*_, **__):\n"
        "    from IPython.core.interactiveshell import ExecutionResult\n"
        "    return ExecutionResult(None)\n"
        "shell.run_cell_async = run_cell_async\n"
        "shell.run_cell = lambda *_, **__: first('pass')"
    ),
    "a do_execute of its own": (
        "async def do_execute(*_, **__):\n"
        "    return {'status': 'ok', 'execution_count': 1, 'payload': [], 'user_expressions': {}}\n"
        "get_ipython().kernel.do_execute = do_execute"
    ),
    "a run_code of its own": (
        "async def run_code(*_, **__):\n"
        "    return False\n"
        "get_ipython().run_code = run_code"
    ),
}  # fmt: skip


def run_cells(*cells: tuple[str, bool]) -> tuple[list[str], nbformat.NotebookNode]:
    """What is said about a run of cells, each with whether it is a test, and the notebook."""
    made = []
    for number, (source, test) in enumerate(cells):
        made.append(nbformat.v4.new_code_cell(source))
        if test:
            about = {"grade": True, "locked": True, "solution": False, "points": POINTS}
            made[-1].metadata.nbgrader = about | {"grade_id": f"test-{number}"}
    notebook = nbformat.v4.new_notebook(cells=made)
    remarks = asyncio.run(run.run(notebook, "full"))
    gradebook.count_errors_alone(notebook)
    return remarks, notebook


def points(cell: nbformat.NotebookNode) -> float:
    return determine_grade(cell)[0]


@pytest.mark.parametrize("shown", ["4", "40", "-1", "2.5", "'all'"])
def test_what_an_answer_displays_gives_no_points(shown):
    answer = f"def f():\n    get_ipython().displayhook({shown})\n    return 1"
    remarks, notebook = run_cells(
        (answer, False), ("assert f() == 2, 'one too few'", True), ("f()", True)
    )
    assert remarks == []
    assert [points(cell) for cell in notebook.cells[1:]] == [0, POINTS]


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_a_test_that_did_not_run_gives_no_points(hook):
    remarks, notebook = run_cells(("x = 1", False), (hook, False), ("assert x == 2", True))
    assert points(notebook.cells[2]) == 0
    assert len(remarks) == 1 and remarks[0].startswith("`test-2` did not run to its end")
    assert notebook.cells[2].source == "assert x == 2"


def test_a_test_runs_whatever_an_answer_calls_its_own():
    names = "print = display = get_ipython = __name__ = None\n"
    names += "import io, sys\nsys.stdout = io.StringIO()"
    remarks, notebook = run_cells((names, False), ("assert True  # and no more", True))
    assert (remarks, points(notebook.cells[1])) == ([], POINTS)
    assert notebook.cells[1].outputs == []


def test_no_earlier_cell_knows_what_the_grader_waits_for():
    """The token is new for each cell and each run; nothing that is shown or kept holds it."""
    spy = "import builtins\nbuiltins.seen = []\nkeep = lambda lines: seen.extend(lines) or lines\n"
    spy += "get_ipython().input_transformers_cleanup.append(keep)"
    cells = (spy, False), ("pass", True), ("pass", True), ("print(*seen)", False)
    _, notebook = run_cells(*cells)
    shown = notebook.cells[3].outputs.pop().text.splitlines()
    assert len({line for line in shown if client.TOKEN in line}) == 2
    assert client.TOKEN not in nbformat.writes(notebook)


def test_a_class_is_told_why(released, tmp_path):
    name = "1-projection"
    blank = nbformat.read(released / f"{name}.ipynb", as_version=4)
    emptied = submission(blank, {"project": HOOKS["a hook that empties cells"]})
    (tmp_path / "in").mkdir()
    nbformat.write(emptied, tmp_path / "in" / "eve.ipynb")
    (row,) = grade(tmp_path / "in", tmp_path / "grades")
    assert row["points"] == "0" and "did not run to its end" in row["reason"]
    assert all(row[grade_id(c)] == "0" for c in blank.cells if str(grade_id(c)).startswith("test-"))
