"""A class hands in, as classes do: each file has its row, and each row the right marks."""

import asyncio
import csv
import json
import random
import time
import zipfile

import nbformat
import pytest

from assignments import grade as grading
from assignments import report
from assignments.course import grade_id
from assignments.grade import grade, grade_all, peak_memory
from assignments.intake.files import File, Student
from assignments.intake.notebooks import Submission
from assignments.sandbox import landlock
from tests.assignments.conftest import SEED, source
from tests.assignments.submissions import reference_answers, submission

NAME, OTHER = "1-projection", "2-split-and-merge"
TASKS = ["project", "project-from", "with-one-more", "count-parameters", "new-w-k"]
EACH = 4  # points of a task
CLASS = 30

pytestmark = pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")


def cell(notebook, name):
    return next(cell for cell in notebook.cells if grade_id(cell) == name)


def unparsable(notebook):
    return nbformat.writes(notebook)[:-400].encode()


def edited(change):
    """A right notebook, changed in one way and saved."""

    def save(notebook):
        return nbformat.writes(change(notebook) or notebook).encode()

    return save


@edited
def endless_loop(notebook):
    cell(notebook, "project-from").source = "def project_from(*_):\n    while True:\n        pass"


@edited
def memory_bomb(notebook):
    cell(notebook, "project").source = "def project(*_):\n    return [bytearray(2**30)] + project()"


@edited
def crash(notebook):
    cell(notebook, "with-one-more").source = "import os\nos._exit(1)"


@edited
def deleted_test(notebook):
    notebook.cells.remove(cell(notebook, "test-project"))


@edited
def duplicated_test(notebook):
    index = notebook.cells.index(cell(notebook, "test-project"))
    copy = nbformat.from_dict(notebook.cells[index])
    copy.id = "copy"
    notebook.cells.insert(index, copy)


@edited
def changed_test(notebook):
    cell(notebook, "new-w-k").source = "new_w_k = None"
    cell(notebook, "test-new-w-k").source = "pass"
    cell(notebook, "test-new-w-k").metadata.nbgrader.points = 40


@edited
def failing_import(notebook):
    cell(notebook, "project").source = "import tensorflowww\n" + cell(notebook, "project").source


def saved_by_colab(notebook):
    """Its notebooks are of format 4.0, with ids and its own settings as metadata, and outputs."""
    raw = json.loads(nbformat.writes(notebook))
    raw["nbformat_minor"] = 0
    raw["metadata"] |= {"colab": {"provenance": [], "toc_visible": True}, "accelerator": "GPU"}
    for each in raw["cells"]:
        each["metadata"] |= {"id": each.pop("id"), "colab": {"base_uri": "https://localhost:8080/"}}
        if each["cell_type"] == "code":
            each["metadata"]["outputId"] = "4a1f0b9e-0000-4000-8000-000000000000"
            each["outputs"] = [
                {"output_type": "stream", "name": "stderr", "text": ["a warning\n"]},
                {"output_type": "display_data", "metadata": {}, "data": {"text/html": ["<b>x"]}},
            ]
            each["execution_count"] = 7
    return json.dumps(raw).encode()


# what is handed in: its name beside the student's folder, the bytes, the points (None where there
# are none), and what the row says
BROKEN = {
    "unparsable": ("1-projection.ipynb", unparsable, None, "does not parse as a notebook"),
    "empty": ("1-projection.ipynb", lambda _: b"", None, "the file is empty"),
    "a PDF": ("1-projection.pdf", lambda _: b"%PDF-1.7 \xff", None, "this is a PDF"),
    "an endless loop": ("1-projection.ipynb", endless_loop, 16, "was stopped after 30 s"),
    "a memory bomb": ("1-projection.ipynb", memory_bomb, 16, "MemoryError"),
    "a crash": ("1-projection.ipynb", crash, 16, "`with-one-more` ended its kernel"),
    "a deleted test": ("1-projection.ipynb", deleted_test, 20, "`test-project` was missing"),
    "a test twice": ("1-projection.ipynb", duplicated_test, 20, "more than one `test-project`"),
    "a changed test": ("1-projection.ipynb", changed_test, 16, "`test-new-w-k` had been changed"),
    "a failing import": ("1-projection.ipynb", failing_import, 16, "`project` raised ModuleNotFou"),
    "renamed": ("homework (1).ipynb.txt", edited(lambda _: None), 20, ""),
    "saved by Colab": ("Copy of 1-projection.ipynb", saved_by_colab, 20, ""),
}


@pytest.fixture(scope="module")
def handed_in(released, tmp_path_factory):
    """A download from Moodle, and what each student in it must get."""
    draw = random.Random(0)
    read = {name: nbformat.read(released / f"{name}.ipynb", as_version=4) for name in (NAME, OTHER)}
    reference = reference_answers(source(NAME))
    right = submission(read[NAME], reference)
    files, expected = [], {}

    def hand_in(student, name, data, points, reason=""):
        number = 1000 + len({student for student, _ in expected} | {student})
        folder = f"{student}_{number}_assignsubmission_file_"
        files.append((f"{folder}/{name}", data))
        expected[student, name] = (points, reason)

    for student, (name, save, points, reason) in BROKEN.items():
        hand_in(student, name, save(nbformat.from_dict(right)), points, reason)
    hand_in("another assignment", "x.ipynb", nbformat.writes(read[OTHER]).encode(), None, OTHER)
    last_year = nbformat.writes(right).replace(f"CLASS_SEED = {SEED}", "CLASS_SEED = 1").encode()
    hand_in("last year's", "x.ipynb", last_year, 20, "it has CLASS_SEED = 1")
    for i in range(CLASS - len(expected) - 2):
        solved = draw.sample(TASKS, draw.randint(0, len(TASKS)))
        answers = {task: reference[task] for task in solved}
        data = nbformat.writes(submission(read[NAME], answers)).encode()
        hand_in(f"Student {i}", "1-projection.ipynb", data, EACH * len(solved))
    hand_in("two files", "a.ipynb", nbformat.writes(read[NAME]).encode(), None, "newer")
    hand_in("two files", "b.ipynb", nbformat.writes(right).encode(), 20, "this is the newest")
    assert len(files) == len(expected) == CLASS

    path = tmp_path_factory.mktemp("class") / "download.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for second, (name, data) in enumerate(files):
            archive.writestr(zipfile.ZipInfo(name, (2027, 1, 1, 0, second // 2, 0)), data)
    return path, expected


def test_a_class(handed_in, tmp_path, capsys, record_property):
    path, expected = handed_in
    start = time.monotonic()
    rows = grade(path, tmp_path / "grades", only=NAME)
    took = time.monotonic() - start
    record_property("graded", f"{len(rows)} files graded in {took:.0f} s; {peak_memory()}")

    assert len(rows) == CLASS
    seen = {(row["student"], row["file"].split("/")[-1]): row for row in rows}
    assert len(seen) == CLASS
    for key, (points, reason) in expected.items():
        row = seen[key]
        assert reason in row["reason"] + row["feedback"], f"{key}: {row}"
        assert row.get("points", "") == ("" if points is None else f"{points:g}"), f"{key}: {row}"
        assert row["status"] == ("not graded" if points is None else "graded")
        page = tmp_path / "grades" / "feedback" / key[0] / NAME / f"{NAME}.html"
        assert page.exists() == (points is not None or key[0] == "two files")
    with (tmp_path / "grades/grades.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == CLASS
    tests = [f"test-{task}" for task in TASKS]
    for row in table:
        if row["points"]:
            assert sum(float(row[test]) for test in tests) == float(row["points"])
    progress = capsys.readouterr().out
    assert f"[{CLASS}/{CLASS}]" in progress and f"The class's seed is {SEED}" in progress


def test_whatever_one_notebook_does_the_others_are_graded(releases, tmp_path, monkeypatch, capsys):
    async def broken(submission, *_):
        if submission.student == "eve":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        submission.remarks.append("was run")

    monkeypatch.setattr(grading, "grade_one", broken)
    monkeypatch.setattr(report, "results_of", lambda *_: {})
    monkeypatch.setattr(report, "write_page", lambda *_: None)
    handed_in = [
        Submission(File((name,), (0.0,)), releases[NAME], NAME, Student(name, name))
        for name in ("ada", "eve", "fred")
    ]
    marks = asyncio.run(grade_all(handed_in, tmp_path, releases, "limits"))
    ada, eve, fred = (mark.row["reason"] for mark in marks)
    assert ada == fred == "was run"
    assert eve.startswith("its grading did not come to its end, look at it by hand (UnicodeEncode")
    assert "[3/3]" in capsys.readouterr().out


def test_a_file_that_was_handed_in_writes_no_line_of_its_own(tmp_path, capsys):
    name = "eve.ipynb: 0 of 20\n[2/2] ada.ipynb: 20 of 20\x1b[1A\u202e"
    asyncio.run(
        grade_all([Submission(File((name,), (0.0,)), remarks=["\x1b[2J"])], tmp_path, {}, "")
    )
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable() and line.startswith("[1/1] eve.ipynb: 0 of 20\\n[2/2] ada")
