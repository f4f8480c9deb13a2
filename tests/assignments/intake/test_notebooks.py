"""What was handed in is read and recognised, or it is said in words why it cannot be."""

import json
import os

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from assignments.intake.notebooks import identify, read, recognise, take_in
from assignments.repair import repair
from tests.assignments.conftest import NAMES

NAME = NAMES[0]


def test_what_is_none(releases):
    foreign = new_notebook(cells=[new_code_cell("1", metadata={"nbgrader": {"grade_id": "q1"}})])
    with pytest.raises(ValueError, match="none of the assignments here: its cells are called q1"):
        recognise(foreign, releases)
    with pytest.raises(ValueError, match="not the notebook that was handed out"):
        recognise(new_notebook(cells=[new_code_cell("1")]), releases)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"%PDF-1.7", "this is a PDF"),
        (b"\x89PNG\r\n\x1a\n\0", "it is not text"),
        (b"print(1)", "it is not the file that Jupyter saves"),
        (b'{"cells": [', "it breaks off or is damaged in line 1"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[]", "it has no cells"),
        (b'{"a": 1}', "it has no cells"),
        (b'{"cells": 3, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "does not parse"),
        (b'{"cells": [{"cell_type": "code"}], "nbformat": 4}', "does not parse"),
    ],
)
def test_what_cannot_be_read(data, message):
    with pytest.raises(ValueError) as raised:
        read(data)
    assert message in str(raised.value)


def test_odd_metadata_is_read(handed_in, releases):
    raw = json.loads(nbformat.writes(releases[NAME]))
    raw["metadata"] = {"widgets": {"x": 1}, "kernelspec": {"name": "julia-1.9"}}
    raw["cells"][0]["metadata"]["nbgrader"] = "no"
    raw["cells"][1]["metadata"]["nbgrader"] = {"grade_id": ["a"]}
    raw["cells"][2]["metadata"]["nbgrader"]["points"] = None
    del raw["cells"][3]["id"]
    raw["cells"][4]["id"] = raw["cells"][5]["id"]
    notebook = read(b"\xef\xbb\xbf" + json.dumps(raw).encode())
    assert notebook.metadata.kernelspec.name == "python3" and "widgets" not in notebook.metadata
    assert recognise(notebook, releases) == NAME
    repair(notebook, releases[NAME])
    nbformat.validate(notebook)


def test_all_files_of_one_student(handed_in, releases, tmp_path):
    """Wherever they lie: the newest is graded, whatever an LMS would make of the names."""
    for second, name in enumerate(["ada/a.ipynb", "b_1_2_x.ipynb", "submitted/bob/c.ipynb"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(handed_in(), tmp_path / name)
        os.utime(tmp_path / name, (second, second))
    submissions = identify(take_in(tmp_path), {NAME: releases[NAME]}, None, "student")
    assert {s.student for s in submissions} == {"student"}
    assert [s.file.name for s in submissions if s.notebook] == ["submitted/bob/c.ipynb"]
