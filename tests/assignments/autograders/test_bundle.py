"""What is in a bundle: what the platform asks for, the hidden tests, no solution."""

import os
import subprocess
import sys
import zipfile

import nbformat
import pytest

from assignments import release as releasing
from assignments.autograders.bundle import LARGEST, PLATFORMS, write_bundle
from assignments.autograders.one import open_course
from assignments.course import ROOT
from tests.assignments.conftest import NAMES, SEED
from tests.assignments.submissions import source
from tests.assignments.test_release import REGION, lines

NAME = NAMES[0]


def region_lines(name, kind):
    """The lines in an assignment's regions of a kind that stand nowhere else in it."""
    inside, outside = set(), set()
    for cell in source(name).cells:
        for region in REGION.finditer(cell.source):
            if region["kind"] == kind:
                inside |= {line.strip() for line in lines(region["text"])}
            else:
                outside |= {line.strip() for line in lines(region["text"])}
        outside |= {line.strip() for line in lines(REGION.sub("", cell.source))}
    return inside - outside


def test_both_platforms_are_there():
    assert PLATFORMS == ["classroom50", "gradescope"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", NAMES)
def test_it_holds_hidden_tests_and_no_solution(course, released, name, tmp_path):
    with zipfile.ZipFile(write_bundle("gradescope", name, course, tmp_path)) as archive:
        texts = {path: archive.read(path) for path in archive.namelist()}
    notebooks = [path for path in texts if path.endswith(".ipynb")]
    assert notebooks == [f"course/{name}/{name}.ipynb"]
    shown = {
        line.strip()
        for cell in nbformat.reads(texts[notebooks[0]].decode(), as_version=4).cells
        for line in cell.source.splitlines()
    }
    solutions, tests = region_lines(name, "SOLUTION"), region_lines(name, "HIDDEN TESTS")
    assert len(solutions) > 5 and len(tests) > 1
    assert not solutions & shown
    assert tests <= shown
    assert not [path for path in texts if "source/" in path or path.startswith("tests/")]
    # and nbgrader makes of it what the students got
    (tmp_path / "course" / name).mkdir(parents=True)
    (tmp_path / notebooks[0]).write_bytes(texts[notebooks[0]])
    open_course(tmp_path / "course", tmp_path / "work")
    made = (tmp_path / "work" / "release" / name / f"{name}.ipynb").read_bytes()
    assert made == (released / f"{name}.ipynb").read_bytes()


def test_gradescope_finds_its_scripts(course, tmp_path):
    with zipfile.ZipFile(write_bundle("gradescope", NAME, course, tmp_path)) as archive:
        for script in ("setup.sh", "run_autograder"):
            entry = archive.getinfo(script)
            assert entry.external_attr >> 16 == 0o755
            assert archive.read(script).startswith(b"#!/usr/bin/env bash\n")
            subprocess.run(["bash", "-n"], input=archive.read(script), check=True)


def test_classroom50_finds_its_script(course, tmp_path):
    path = write_bundle("classroom50", NAME, course, tmp_path)
    assert path.stat().st_size < LARGEST
    with zipfile.ZipFile(path) as archive:
        assert {entry.split("/")[0] for entry in archive.namelist()} == {NAME}
        compile(archive.read(f"{NAME}/autograder.py"), "autograder.py", "exec")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_brings_the_package_and_the_lock(unpacked, platform):
    folder = unpacked(platform, NAME, "bundle")
    folder = folder / NAME if platform == "classroom50" else folder
    ours = {p for p in (ROOT / "src/attention").rglob("*") if p.is_file() and ".py" not in p.suffix}
    ours |= set((ROOT / "src/attention").rglob("*.py")) | {ROOT / "requirements.txt"}
    for path in ours:
        assert (folder / path.relative_to(ROOT)).read_bytes() == path.read_bytes()
    subprocess.run(["bash", "-n", folder / "install.sh"], check=True)
    found = subprocess.run(
        [sys.executable, "-P", "-c", "import attention.checks.tasks; print(attention.__file__)"],
        env={"PYTHONPATH": f"{folder}/src"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == f"{folder}/src/attention/__init__.py"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_same_bytes_twice(course, platform, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_bundle(platform, NAME, course, tmp_path / folder)
    assert (tmp_path / f"a/{NAME}.zip").read_bytes() == (tmp_path / f"b/{NAME}.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / f"a/{NAME}.zip") as archive:
        assert archive.namelist() == sorted(archive.namelist())
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def changed(course, tmp_path, change):
    """A course with one assignment that was changed."""
    notebook = nbformat.read(course / f"source/{NAME}/{NAME}.ipynb", as_version=4)
    for cell in notebook.cells:
        change(cell)
    (tmp_path / "source" / NAME).mkdir(parents=True)
    nbformat.write(notebook, tmp_path / f"source/{NAME}/{NAME}.ipynb")
    return tmp_path


def test_an_answer_without_marks_is_refused(course, tmp_path):
    def unmark(cell):
        cell.source = cell.source.replace("### BEGIN SOLUTION", "# my solution")

    with pytest.raises(ValueError, match="`project` is an answer without the lines"):
        write_bundle("gradescope", NAME, changed(course, tmp_path, unmark), tmp_path)


def test_half_a_point_is_refused(course, tmp_path):
    def halve(cell):
        if "points" in cell.metadata.get("nbgrader", {}):
            cell.metadata.nbgrader.points = 1.5

    half = changed(course, tmp_path, halve)
    with pytest.raises(ValueError, match=r"`test-project` has 1\.5 points"):
        write_bundle("classroom50", NAME, half, tmp_path)
    write_bundle("gradescope", NAME, half, tmp_path)


def test_make_assignments_writes_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(releasing, "ROOT", tmp_path)
    monkeypatch.setattr(releasing, "BUILD", tmp_path / "_build")
    assert releasing.main([str(SEED), "--for", "gradescope"]) == 0
    written = {path.name for path in (tmp_path / "_build/autograders/gradescope").iterdir()}
    assert written == {f"{name}.zip" for name in NAMES}
    assert f"_build/autograders/gradescope/{NAME}.zip: " in capsys.readouterr().out
    # what is handed out is what it is without an autograder
    handed_out = {path.name for path in (tmp_path / "_build/assignments").iterdir()}
    assert handed_out == {f"{name}.{ending}" for name in NAMES for ending in ("ipynb", "zip")}
    with pytest.raises(SystemExit):
        releasing.main([str(SEED), "--for", "blackboard"])
    assert "'classroom50', 'gradescope'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("refused", "installed"), [("--python 3.11", True), ("--torch-backend", True), ("pip", False)]
)
def test_what_the_network_refuses_is_tried_again_and_taken_from_elsewhere(
    refused, installed, tmp_path
):
    """With a python3 and a uv that write down what they are asked, and refuse one thing."""
    script = (ROOT / "assignments/autograders/entry/install.sh").read_text("utf-8")
    (tmp_path / "install.sh").write_text(script.replace("for wait in 0 5 20", "for wait in 0 0 0"))
    for program in ("bin/python3", ".uv/bin/python", ".uv/bin/uv", ".venv/bin/python"):
        path = tmp_path / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n'
            f'case "$*" in *"{refused}"*) exit 1;; esac\necho {tmp_path}\n'
        )
        path.chmod(0o755)
    run = subprocess.run(
        ["bash", "install.sh"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode == 0) == installed, run.stderr
    asked = (tmp_path / "asked").read_text("utf-8").splitlines()
    assert sum(refused in line for line in asked) == 3
