"""install.sh, where the network fails: it tries again, and then goes the second way."""

import os
import shutil
import subprocess

import pytest

from assignments.autograders.bundle import ENTRY
from assignments.course import ROOT

# Stands for python3 and for every program of an environment: writes down what it is asked for.
FAKE = """#!/usr/bin/env bash
echo "$0 $*" >> {log}
case "$*" in
*"-m venv"*)
    mkdir -p "${{@: -1}}/bin"
    cp {fake} "${{@: -1}}/bin/python"
    cp {fake} "${{@: -1}}/bin/uv" ;;
*uv==* | *"pip install --quiet --python"*)
    if [ -e {down} ]; then sed -i 1d {down}; [ -s {down} ] || rm {down}; exit 1; fi ;;
-) exec {python} - ;;
*get_path*) echo {folder} ;;
esac
"""


@pytest.fixture
def install(tmp_path):
    """Runs install.sh where as many attempts to fetch fail. Returns the run and what was asked."""
    log, down, folder = (tmp_path / name for name in ("log", "down", "bundle"))
    programs = tmp_path / "programs"
    for path in (programs, folder):
        path.mkdir()
    fake = programs / "python3"
    python = shutil.which("python3")
    fake.write_text(FAKE.format(log=log, down=down, fake=fake, folder=folder, python=python))
    (programs / "sleep").write_text(f'#!/bin/sh\necho "sleep $*" >> {log}\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    for file in (ENTRY / "install.sh", ROOT / "pyproject.toml", ROOT / "requirements.txt"):
        shutil.copy(file, folder)

    def run(failures: int) -> tuple[subprocess.CompletedProcess, str]:
        if failures:
            down.write_text("x\n" * failures)
        environment = {"PATH": f"{programs}{os.pathsep}{os.defpath}"}
        command = ["bash", folder / "install.sh"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        return done, log.read_text()

    return run


def test_a_moment_without_a_network(install):
    run, asked = install(failures=2)
    assert run.returncode == 0, run.stderr
    assert asked.count("sleep ") == 2 and asked.count("--group grade") == 1
    assert "wanted.txt" not in asked


def test_the_second_way(install, tmp_path):
    run, asked = install(failures=4)
    assert run.returncode == 0, run.stderr
    assert "uv cannot be used here, so pip is." in run.stderr
    assert "--constraint requirements.txt --requirement wanted.txt" in asked
    wanted = (tmp_path / "bundle/wanted.txt").read_text()
    assert "torch>=" in wanted and "nbgrader>=" in wanted and "anywidget>=" in wanted
    assert (tmp_path / "bundle/attention.pth").read_text() == f"{tmp_path}/bundle/src\n"
