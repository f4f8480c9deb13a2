"""`make grade` with a class list and sixty files, most of them odd: no file and nobody is lost,
and each row has the right marks.

It runs in a copy of what it needs, since it writes beside the code, where grades of a real class
may lie.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from assignments.course import ROOT, SEED_CELL, grade_id
from assignments.intake import notebooks
from assignments.sandbox import landlock
from tests.assignments.conftest import SEED
from tests.assignments.intake.test_files import zipped
from tests.assignments.submissions import reference_answers, source, submission

NAME, OTHER = "1-projection", "2-split-and-merge"
CLASS = 60
MEGABYTES = 1500  # of the grader, whatever it is given

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


@edited
def leaves(notebook):
    notebook.cells.insert(2, new_code_cell("exit()"))


@edited
def last_years_seed(notebook):
    seed = cell(notebook, SEED_CELL)
    seed.source = seed.source.replace(f"CLASS_SEED = {SEED}", "CLASS_SEED = 1")


@edited
def seed_of_5000_digits(notebook):
    cell(notebook, SEED_CELL).source = f"CLASS_SEED = {'7' * 5000}"


@edited
def as_many_cells_as_are_read(notebook):
    notebook.cells += [new_code_cell("1") for _ in range(notebooks.CELLS - len(notebook.cells))]


@edited
def huge_outputs_in_the_file(notebook):
    notebook.cells[1:1] = [
        new_code_cell("1", outputs=[new_output("stream", text="x" * 3_000_000)]) for _ in range(3)
    ]


@edited
def huge_outputs_when_it_runs(notebook):
    flood = "for i in range(100): print('x' * 100_000)"
    notebook.cells.insert(2, new_code_cell(flood))
    notebook.cells.insert(3, new_code_cell("print('y' * 20_000_000)"))


@edited
def fills_the_disk(notebook):
    code = "for i in range(20): open(f'{i}', 'wb').write(bytes(10_000_000))"
    notebook.cells.insert(2, new_code_cell(code))


@edited
def without_its_tests(notebook):
    notebook.cells = [
        each for each in notebook.cells if not each.metadata.get("nbgrader", {}).get("grade")
    ]


def halves_of_signs(notebook):
    raw = json.loads(nbformat.writes(notebook))
    raw["cells"][0]["source"] = "x\ud800y"
    raw["cells"][0]["metadata"]["\udfff"] = "\ud800"
    return json.dumps(raw).encode()


def of_format_3(notebook):
    return nbformat.writes(nbformat.convert(notebook, 3), version=3).encode()


def odd_metadata(notebook):
    raw = json.loads(nbformat.writes(notebook))
    raw["metadata"] = {"widgets": {"x": 1}, "kernelspec": {"name": "julia-1.9"}}
    raw["cells"][0]["metadata"]["nbgrader"] = "no"
    del raw["cells"][3]["id"]
    return b"\xef\xbb\xbf" + json.dumps(raw).encode()


def nested_zips(data):
    for _ in range(8):
        data = zipped({"x.zip": data})
    return data


def zip_of_false_names(_):
    data = bytearray(zipped({"aaaa.ipynb": b"{"}).replace(b"aaaa", b"\xff\xff\xff\xff"))
    for header, flags in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        data[data.index(header) + flags + 1] |= 0x08  # "the name is UTF-8"
    return bytes(data)


def notebook_of(*cells):
    return lambda _: nbformat.writes(new_notebook(cells=list(cells))).encode()


def raw(data):
    return lambda _: data


FOREIGN = new_code_cell("1", metadata={"nbgrader": {"grade_id": "q1"}})
# What is handed in: the bytes, made of a right notebook; the points, None where there are none;
# what the row says; and what the file is called where it is not `x.ipynb`.
ODD = {
    "unparsable": (unparsable, None, "does not parse as a notebook"),
    "empty": (raw(b""), None, "the file is empty"),
    "a PDF": (raw(b"%PDF-1.7 \xff"), None, "this is a PDF", "x.pdf"),
    "an endless loop": (endless_loop, 16, "was stopped after 30 s"),
    "a memory bomb": (memory_bomb, 16, "MemoryError"),
    "a crash": (crash, 16, "`with-one-more` ended its kernel"),
    "leaves": (leaves, 20, "cell 3 raised SystemExit"),
    "a deleted test": (deleted_test, 20, "`test-project` was missing"),
    "a test twice": (duplicated_test, 20, "more than one `test-project`"),
    "a changed test": (changed_test, 16, "`test-new-w-k` had been changed"),
    "a failing import": (failing_import, 16, "`project` raised ModuleNotFou"),
    "renamed": (edited(lambda _: None), 20, "", "homework (1).ipynb.txt"),
    "saved by Colab": (saved_by_colab, 20, "", f"Copy of {NAME}.ipynb"),
    "last year's": (last_years_seed, 20, "it has CLASS_SEED = 1"),
    "a seed of 5,000 digits": (seed_of_5000_digits, 20, "it has CLASS_SEED = 777"),
    "halves of signs": (halves_of_signs, 20, ""),
    "2,000 cells": (as_many_cells_as_are_read, 20, ""),
    "2,001 cells": (raw(b'{"cells": [' + b"{}," * 2000 + b"{}]}"), None, "it has 2001 cells"),
    "huge outputs in the file": (huge_outputs_in_the_file, 20, ""),
    "huge outputs when it runs": (huge_outputs_when_it_runs, 20, "displayed too much at once"),
    "fills the disk": (fills_the_disk, 20, "wrote more than 64 MB"),
    "without its tests": (without_its_tests, 20, "`test-project` was missing, and was put back"),
    "format 3": (of_format_3, 20, ""),
    "odd metadata": (odd_metadata, 20, ""),
    "no cell": (notebook_of(), None, "not the notebook that was handed out"),
    "another course's": (notebook_of(FOREIGN), None, "its cells are called q1"),
    "no JSON": (raw(b"print(1)"), None, "it is not the file that Jupyter saves"),
    "a picture": (raw(b"\x89PNG\r\n\x1a\n\0"), None, "it is not text"),
    "a list": (raw(b"[]"), None, "it has no cells"),
    "a number for cells": (raw(b'{"cells": 3, "nbformat": 4}'), None, "does not parse"),
    "nested deeply": (raw(b"[" * 200_000), None, "it is nested too deeply"),
    "11 MB": (raw(b" " * 11 * 2**20 + b"{}"), None, "the file has 11 MB"),
    "51 MB": (raw(bytes(51 * 2**20)), None, "the file has 51 MB"),
    "a zip": (lambda n: zipped({"y.ipynb": edited(lambda _: None)(n)}), 20, "", "x.zip"),
    "a zip with another's name": (
        lambda n: zipped({"Bob_1001_assignsubmission_file_/y.ipynb": edited(lambda _: None)(n)}),
        *(20, "", "x.zip"),
    ),
    "a zip of false names": (zip_of_false_names, None, "the zip cannot be read", "x.zip"),
    "no zip": (raw(b"PK\3\4, and then"), None, "the zip cannot be read", "x.zip"),
    "zips within zips": (lambda _: nested_zips(b"{"), None, "too many zips within zips", "x.zip"),
    "a long name": (edited(lambda _: None), 20, "", f"{'x' * 200}.ipynb"),
    "a name for the terminal": (edited(lambda _: None), 20, "", "\x1b[2J\u202ex.ipynb"),
    "a formula for a name": (edited(lambda _: None), 20, "", "=HYPERLINK(1).ipynb"),
    "a name that is no text": (edited(lambda _: None), 20, "", os.fsdecode(b"x\xff.ipynb")),
}
LINK, TWICE, ANOTHER, UNKNOWN, SHARED, ABSENT = range(len(ODD), len(ODD) + 6)


def person(number):
    return f"{[*ODD, *'LTOUSA'][number] if number <= ABSENT else 'Student'} {number}"


def called(number, name="x.ipynb"):
    known_as = re.sub("[^a-z]", "", person(number).lower())
    return f"{known_as}_{1000 + number}_{7000 + number}_{name}"


@pytest.fixture
def checkout(tmp_path):
    """The parts of this checkout that grade, with this environment as its own."""
    folder = tmp_path / "checkout"
    for part in ("assignments", "tools"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("Makefile", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / part, folder)
    (folder / "book").mkdir()
    (folder / ".venv").mkdir()
    for part in Path(sys.prefix).iterdir():
        if part.name != "installed":  # which names the checkout
            (folder / ".venv" / part.name).symlink_to(part)
    (folder / ".venv" / "installed").write_text(f"{folder}\n")
    return folder


@pytest.fixture
def handed_in(released, tmp_path):
    """The folder of a download from Canvas; of each person the points and what is said of them."""
    folder = tmp_path / "download"
    folder.mkdir()
    blank = nbformat.read(released / f"{NAME}.ipynb", as_version=4)
    reference = reference_answers(source(NAME))
    right = submission(blank, reference)
    expected = {}
    for number, (save, points, says, *name) in enumerate(ODD.values()):
        data = save(nbformat.from_dict(right))
        (folder / called(number, *name)).write_bytes(data)
        expected[number] = points, says
    (folder / called(LINK)).symlink_to("/etc/passwd")
    expected[LINK] = None, "it is a link, and links are not followed"
    good = nbformat.writes(right).encode()
    for second, name in enumerate(("x.ipynb", "x-1.ipynb")):
        (folder / called(TWICE, name)).write_bytes(good)
        os.utime(folder / called(TWICE, name), (second, second))
    expected[TWICE] = 20, "of 2 files of this student this is the newest"
    (folder / called(ANOTHER)).write_bytes((released / f"{OTHER}.ipynb").read_bytes())
    expected[ANOTHER] = None, OTHER
    (folder / "nobody_9999_7_x.ipynb").write_bytes(good)
    (folder / "shared@example.edu.ipynb").write_bytes(good)
    for number in range(ABSENT + 1, CLASS):
        answers = dict(list(reference.items())[: number % 3])
        (folder / called(number)).write_bytes(nbformat.writes(submission(blank, answers)).encode())
        expected[number] = 4 * (number % 3), ""
    return folder, expected


@pytest.fixture
def class_list(tmp_path):
    """The class as Canvas exports it. Two have one address, and a third one has handed in by it."""
    path = tmp_path / "class.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", f"{NAME} (4)"])
        table.writerow(["    Points Possible", "", "", "", "", "20"])
        for number in range(CLASS):
            login = "shared" if number in (UNKNOWN, SHARED) else f"s{number}"
            ids = [1000 + number, f"S{number}", f"{login}@example.edu", "A"]
            table.writerow([person(number), *ids, ""])
    return path


def rows_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_nothing_of_an_odd_class_is_lost(checkout, handed_in, class_list, record_property):
    folder, expected = handed_in
    command = ["make", "-C", checkout, "--no-print-directory", "grade", f"SUBMISSIONS={folder}"]
    done = subprocess.run(
        [*command, f"ROSTER={class_list}", f"ASSIGNMENT={NAME}"],
        capture_output=True,
        text=True,
    )
    (took,) = re.findall(r"^\d+ s; .*", done.stdout, re.MULTILINE) or [done.stdout]
    record_property("graded", f"{len(list(folder.iterdir()))} odd files graded in {took}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    assert max(int(size) for size in re.findall(r"(\d+) MB here", took)) < MEGABYTES
    assert f"/{len(list(folder.iterdir()))}]" in done.stdout
    assert f"The class's seed is {SEED}" in done.stdout
    for line in done.stdout.splitlines():
        assert line.isprintable() and len(line) < 1000, line[:200]

    # Every file has one row, with its points, or why there are none, in words.
    grades = checkout / "_build" / "grades"
    rows = rows_of(grades / "grades.csv")
    assert len({row["file"] for row in rows}) == len(rows) == len(list(folder.iterdir())) >= CLASS
    for row in rows:
        assert row["status"] == ("graded" if row["points"] else "not graded"), row
        assert row["points"] or re.search(r"\w+ \w+ \w+", row["reason"]), row
        assert "did not come to its end" not in row["reason"], row
        if row["points"]:
            tests = [float(row[part]) for part in row if part.startswith("test-")]
            assert len(tests) == 5 and sum(tests) == float(row["points"])
    graded = {row["student"] for row in rows if row["points"]}
    assert {path.parent.parent.name for path in grades.glob("feedback/*/*/*.html")} == graded
    for number, (points, says) in expected.items():
        of_one = [row for row in rows if called(number, "") in row["file"]]
        row = max(of_one, key=lambda row: bool(row["points"]))
        assert says in row["reason"] + row["feedback"], (person(number), row)
        assert row["points"] == ("" if points is None else f"{points:g}"), (person(number), row)

    # Everybody has these points in what Canvas imports, or a row that says why there are none.
    given = {row["ID"]: row[f"{NAME} (4)"] for row in rows_of(grades / "grades-canvas.csv")}
    left_out = rows_of(grades / "grades-left-out.csv")
    for number in range(CLASS):
        points, _ = expected.get(number, (None, ""))
        assert given[f"{1000 + number}"] == ("" if points is None else f"{points:g}")
        if points is None:
            assert any(
                called(number, "") in row["file"]
                or row["student"] == person(number)
                or f"{person(number)} (" in row["reason"]  # one of two whom a file can be of
                for row in left_out
            ), person(number)
    reasons = {row["file"] or row["student"]: row["reason"] for row in left_out}
    assert reasons["nobody_9999_7_x.ipynb"] == "nobody in class.csv is this student"
    assert reasons["shared@example.edu.ipynb"].startswith("class.csv has 2 whom this can be: ")
    assert reasons[person(ABSENT)] == "nothing was handed in"
    assert "of 2 files of this student the same " in reasons[called(TWICE)]
