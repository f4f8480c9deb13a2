"""What was handed in is read and recognised, or it is said in words why it cannot be."""

import json
import os
import zipfile

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from assignments.course import SEED_CELL, grade_id
from assignments.errors import GradingError
from assignments.intake import notebooks
from assignments.intake.notebooks import (
    CELLS,
    LARGEST,
    REASON,
    class_seed,
    identify,
    read,
    recognise,
    take_in,
)
from assignments.repair import repair
from tests.assignments.conftest import NAMES, SEED

NAME = NAMES[0]


def test_what_is_none(releases):
    foreign = new_notebook(cells=[new_code_cell("1", metadata={"nbgrader": {"grade_id": "q1"}})])
    with pytest.raises(ValueError, match="not one of the assignments: its cells are called q1"):
        recognise(foreign, releases)
    with pytest.raises(ValueError, match="not the notebook that was handed out"):
        recognise(new_notebook(cells=[new_code_cell("1")]), releases)


def nested(depth: int) -> bytes:
    """A notebook whose attachments are deeper than their validator can go, and say so."""
    cell = b'{"cell_type": "markdown", "metadata": {}, "source": "", "attachments": %s}'
    cell %= b'{"a":' * depth + b"{}" + b"}" * depth
    return b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [%s]}' % cell


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
        (
            b'{"cells": [' + b"{}," * CELLS + b"{}]}",
            f"it has {CELLS + 1} cells, and at most {CELLS} are",
        ),
        (b" " * LARGEST + b"{}", "the file has 10 MB, and at most 10 are read"),
        (nested(400), "this does not parse as a notebook"),
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


def test_what_lies_beside_a_notebook_has_no_row(handed_in, releases, tmp_path):
    """But for what was meant to be one; and who has handed in nothing else has a row for it."""
    files = {f"ada/{NAME}.ipynb": nbformat.writes(handed_in()).encode(), "ada/again.ipynb": b""}
    files |= {"ada/sketch.png": b"\x89PNG", "bob/sketch.png": b"\x89PNG"}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    submissions = identify(take_in(tmp_path), {NAME: releases[NAME]}, None)
    assert {s.file.name for s in submissions} == files.keys() - {"ada/sketch.png"}
    assert [s.file.name for s in submissions if s.notebook] == [f"ada/{NAME}.ipynb"]


@pytest.mark.parametrize(
    "other", ["ada .ipynb", "ada.ipynb.txt", "ada.json", " ada.ipynb", "ada/x.ipynb", "ada.zip"]
)
def test_no_other_file_takes_a_students_place(other, handed_in, releases, tmp_path):
    """A name that no LMS has given can be anybody's, and is soon like another's."""
    text = nbformat.writes(handed_in())
    (tmp_path / other).parent.mkdir(exist_ok=True)
    for name in ("ada.ipynb", "bob.ipynb", other):
        (tmp_path / name).write_text(text, "utf-8")
    if other.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / other, "w") as archive:
            archive.writestr("x.ipynb", text)
    submissions = identify(take_in(tmp_path), {NAME: releases[NAME]}, None)
    assert [s.file.name for s in submissions if s.notebook] == ["bob.ipynb"]
    for refused in (s for s in submissions if not s.notebook):
        assert all(f"`{part}`" in refused.reason for part in ("ada.ipynb", other.split("/")[0]))


def test_a_name_made_up_as_an_lms_gives_it_takes_no_place(handed_in, releases, tmp_path):
    """A second "cy" gives the first one's number to its name, which then is that of cy_1."""
    for name in ("cy_1.ipynb", " cy_1_assignsubmission_file_x.ipynb", "cy_2_3_x.ipynb"):
        (tmp_path / name).write_text(nbformat.writes(handed_in()), "utf-8")
    submissions = identify(take_in(tmp_path), {NAME: releases[NAME]}, None)
    assert [s.file.name for s in submissions if s.notebook] == ["cy_2_3_x.ipynb"]


def test_what_is_said_of_a_file_fits_a_line(handed_in, tmp_path):
    (tmp_path / "ada.ipynb").write_text(nbformat.writes(handed_in()), "utf-8")
    [submission] = take_in(tmp_path)
    submission.remarks += ["cell 1 was added"] * 300
    assert len(submission.reason) <= REASON + 2 and submission.reason.endswith(" …")


@pytest.mark.parametrize(
    "names",
    [
        ["ada/old.ipynb", "ada/new.ipynb"],
        ["week 1/ada/old.ipynb", "week 1/ada/new.ipynb"],
        ["ada_LATE_1_7_x.ipynb", "ada_1_8_x-1.ipynb"],
        ["Ada_1_assignsubmission_file_/x.ipynb", "Ada_1_assignsubmission_file_/y.ipynb"],
    ],
)
def test_the_newest_of_a_students_own_files_is_graded(names, handed_in, releases, tmp_path):
    for second, name in enumerate([*names, names[0].replace("da", "ve").replace("_1_", "_2_")]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(handed_in(), tmp_path / name)
        os.utime(tmp_path / name, (second, second))
    submissions = identify(take_in(tmp_path), {NAME: releases[NAME]}, None)
    (ada,) = (s for s in submissions if s.notebook and "da" in s.student)
    assert ada.file.name == names[1]
    assert ada.reason == "of 2 files of this student this is the newest"


def with_seed(notebook, seed) -> bytes:
    for cell in notebook.cells:
        if grade_id(cell) == SEED_CELL:
            cell.source = f"CLASS_SEED = {seed}"
    return nbformat.writes(notebook).encode()


def test_every_student_has_one_vote_for_the_seed(handed_in, tmp_path, capsys):
    """Twelve copies in one zip are one student's; a seed that is no number of 64 bits is none."""
    for name in ("ada", "bob", "cleo", "dora"):
        (tmp_path / f"{name}.ipynb").write_bytes(with_seed(handed_in(), SEED))
    (tmp_path / "fred.ipynb").write_bytes(with_seed(handed_in(), "7" * 5000))
    (tmp_path / "gus.ipynb").write_bytes(with_seed(handed_in(), 2**63))
    with zipfile.ZipFile(tmp_path / "eve.zip", "w") as archive:
        for i in range(12):
            archive.writestr(f"{i}_1_assignsubmission_file_/x.ipynb", with_seed(handed_in(), 11))
    assert class_seed(take_in(tmp_path)) == SEED
    assert f"{SEED}, as with 4 of 5 students" in capsys.readouterr().out


def test_without_a_clear_majority_the_seed_is_asked_for(handed_in, tmp_path):
    for name, seed in {"ada": 5, "bob": 5, "cleo": 6, "dora": 7}.items():
        (tmp_path / f"{name}.ipynb").write_bytes(with_seed(handed_in(), seed))
    with pytest.raises(GradingError, match=r"5 \(2 students\), .* make grade CLASS_SEED=2027"):
        class_seed(take_in(tmp_path))


def test_halves_of_signs_and_outputs_are_left_out(handed_in, releases):
    raw = json.loads(nbformat.writes(handed_in()))
    raw["cells"][0]["source"] = "x\ud800y \U0001f600"
    raw["cells"][1]["metadata"]["nbgrader"] = {"grade_id": "\udfff"}
    code = next(cell for cell in raw["cells"] if cell["cell_type"] == "code")
    code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "\ud800"}]
    notebook = read(json.dumps(raw).encode())
    assert notebook.cells[0].source == "x?y \U0001f600"
    assert grade_id(notebook.cells[1]) == "?"
    nbformat.writes(notebook).encode()


def test_what_nobody_thought_of_is_one_files_reason(tmp_path, monkeypatch):
    def broken(data):
        raise KeyError("evalue") if data == b"bad" else ValueError("no notebook")

    monkeypatch.setattr(notebooks, "read", broken)
    for name in ("bad", "good"):
        (tmp_path / name).write_text(name)
    assert [s.reason for s in take_in(tmp_path)] == ["KeyError: 'evalue'", "no notebook"]
