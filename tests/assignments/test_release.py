"""What is handed out holds no answer, is the same twice, and works where it is unpacked."""

import ast
import re
import zipfile

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from assignments.course import SEED_CELL, grade_id, with_seed
from assignments.release import main, release
from attention.checks.inputs import Numbers
from tests.assignments.conftest import NAMES, SEED
from tests.assignments.submissions import bank, source
from tools.kernels import unix_sockets

REGION = re.compile(
    r"### BEGIN (?P<kind>SOLUTION|HIDDEN TESTS)\n(?P<text>.*?)### END (?P=kind)", re.DOTALL
)


def secrets(name: str) -> set[str]:
    """The lines of an assignment's solutions and hidden tests that stand nowhere else in it."""
    hidden, shown = set(), set()
    for cell in source(name).cells:
        hidden |= {
            line.strip()
            for region in REGION.finditer(cell.source)
            for line in lines(region["text"])
        }
        shown |= {line.strip() for line in lines(REGION.sub("", cell.source))}
    return hidden - shown


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line.strip()) > 8]


@pytest.mark.parametrize("name", NAMES)
def test_no_answer_is_handed_out(released, name):
    own = secrets(name)
    tests = sum("BEGIN HIDDEN" in cell.source for cell in source(name).cells)
    solutions = sum("BEGIN SOLUTION" in cell.source for cell in source(name).cells)
    assert tests >= 3 and solutions >= 3 and len(own) > 10
    print(f"{name}: {len(own)} lines of {solutions} solutions and {tests} hidden tests sought")
    with zipfile.ZipFile(released / f"{name}.zip") as archive:
        assert archive.namelist() == [f"{name}.ipynb"]
        packed = archive.read(f"{name}.ipynb")
    assert packed == (released / f"{name}.ipynb").read_bytes()
    notebook = nbformat.reads(packed.decode(), as_version=4)
    shown = {line.strip() for cell in notebook.cells for line in cell.source.splitlines()}
    assert not own & shown
    for marker in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "widget-state"):
        assert marker not in packed.decode()
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"nbgrader", "deletable", "editable", "tags"}
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None


@pytest.mark.parametrize("name", NAMES)
def test_its_checks_come_from_one_module(name):
    """Whoever writes an assignment finds all in `attention.checks.tasks`, wherever it moves."""
    cells = [cell.source for cell in source(name).cells if cell.cell_type == "code"]
    mistakes, rights = bank(name)
    modules = {
        node.module
        for code in [*cells, *(answer.code for answer in mistakes + rights)]
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("attention.checks")
    }
    assert modules == {"attention.checks.tasks"}


def test_only_student_versions_lie_there(released):
    expected = {f"{name}.{ending}" for name in NAMES for ending in ("ipynb", "zip")}
    assert {path.name for path in released.iterdir()} == expected


def test_the_same_seed_makes_the_same_bytes(released, tmp_path):
    release(tmp_path / "again", tmp_path / "course", SEED)
    for path in released.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_the_address_of_the_fork_is_in_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/fork")
    monkeypatch.setenv("GITHUB_SHA", "0123456789abcdef0123456789abcdef01234567")
    _, published = release(tmp_path / "release", tmp_path / "course", SEED)
    assert published.startswith("https://github.com/someone/fork@0123456789abcdef")
    for name in NAMES:
        assert f'PUBLISHED = \\"{published}\\"' in (tmp_path / f"release/{name}.ipynb").read_text()


@pytest.mark.parametrize("seed", ["0", "last year", "-1"])
def test_a_seed_is_a_number(seed, capsys):
    assert main([seed]) == 2
    assert "make assignments CLASS_SEED=2027" in capsys.readouterr().out


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_it_works_where_it_is_unpacked(student_version, name, tmp_path):
    """From its first cell on; the tests fail with what is still to be written, and no other way."""
    notebook = student_version(name)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        config=Config(AsyncKernelManager=unix_sockets()),
        timeout=120,
        allow_errors=True,
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    raised = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            raised[grade_id(cell)] = [o.ename for o in cell.outputs if o.output_type == "error"]
    assert raised[None] == raised[SEED_CELL] == []
    tests = {cell: names for cell, names in raised.items() if (cell or "").startswith("test-")}
    assert len(tests) >= 3
    for names in tests.values():
        assert names in (["NotYet"], ["NotImplementedError"], ["AssertionError"])


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", NAMES)
def test_the_class_seed_changes_the_numbers(name, monkeypatch):
    """Each test of the reference solution is run with two seeds; all that it draws is another."""
    monkeypatch.setattr(Numbers, "tensor", spied(Numbers.tensor, drawn := []))
    by_seed = []
    for seed in (2026, 2027):
        drawn_in, names = {}, {}
        for cell in with_seed(source(name), seed).cells:
            if cell.cell_type == "code" and cell.id != "setup" and "PUBLISHED" not in cell.source:
                drawn.clear()
                exec(compile(cell.source, name, "exec"), names)
                if (grade_id(cell) or "").startswith("test-"):
                    drawn_in[grade_id(cell)] = [part.flatten().tolist() for part in drawn]
        by_seed.append(drawn_in)
    drawing = {cell for cell, parts in by_seed[0].items() if parts}
    print(f"{name}: {len(drawing)} of {len(by_seed[0])} tests draw tensors")
    assert len(drawing) >= 2
    for cell in drawing:
        assert all(a != b for a, b in zip(*(seed[cell] for seed in by_seed), strict=False))


def spied(method, drawn):
    def method_and_note(self, *arguments, **settings):
        drawn.append(method(self, *arguments, **settings))
        return drawn[-1]

    return method_and_note
