"""What each platform starts, in a bare tree laid out by its contract, with a fresh interpreter."""

import html
import json
import os
import subprocess
import sys

import nbformat
import pytest
from markdown_it import MarkdownIt
from nbformat.v4 import new_code_cell

from assignments.autograders import classroom50
from assignments.autograders.one import Outcome, Row
from assignments.course import tasks
from assignments.sandbox import landlock
from tests.assignments.autograders.conftest import give_packages
from tests.assignments.autograders.test_bundle import region_lines
from tests.assignments.autograders.test_points import RUNNER
from tests.assignments.conftest import NAMES, side_by_side
from tests.assignments.submissions import bank, reference_answers, source, submission

NAME = NAMES[0]
MISTAKE = next(side_by_side(bank(NAME)[0]))[0]
LOST = tasks(source(NAME))[f"test-{MISTAKE.cell}"]
SNOOP = """
import os
for path in {paths}:
    try:
        os.listdir(path)
    except OSError:
        continue
    raise RuntimeError("It lists " + path)
raise RuntimeError("It lists nothing.")
"""

pytestmark = pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")


@pytest.fixture
def autograder(unpacked, tmp_path):
    """/autograder, as Gradescope lays it out, after its setup."""
    folder = tmp_path / "autograder"
    source = unpacked("gradescope", NAME, "autograder/source")
    give_packages(source)
    (folder / "run_autograder").write_bytes((source / "run_autograder").read_bytes())
    (folder / "run_autograder").chmod(0o755)
    (folder / "submission").mkdir()
    (folder / "results").mkdir()
    return folder


def run_autograder(folder):
    return subprocess.run(
        [folder / "run_autograder"],
        cwd=folder,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
    )


def with_a_mistake(released):
    cells = reference_answers(source(NAME)) | {MISTAKE.cell: MISTAKE.code}
    return submission(nbformat.read(released / f"{NAME}.ipynb", as_version=4), cells)


def test_gradescope_grades(released, autograder):
    """Two files, of which the newer counts, and code that looks for what it must not see."""
    newer = with_a_mistake(released)
    hidden = [autograder / part for part in ("source/course", "source/assignments", "submission")]
    newer.cells.append(new_code_cell(SNOOP.format(paths=[str(path) for path in hidden])))
    nbformat.write(newer, autograder / "submission/b.ipynb")
    older = autograder / "submission/a.ipynb"
    older.write_bytes((released / f"{NAME}.ipynb").read_bytes())
    os.utime(older, (0, 0))
    before = {path: path.read_bytes() for path in (autograder / "submission").iterdir()}

    run = run_autograder(autograder)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.startswith("Sandbox: limits, Landlock")

    assert {path: path.read_bytes() for path in (autograder / "submission").iterdir()} == before
    text = (autograder / "results/results.json").read_text("utf-8")
    assert "HIDDEN TESTS" not in text
    assert not [line for line in region_lines(NAME, "HIDDEN TESTS") if line in text]
    results = json.loads(text)
    keys = {"output", "output_format", "visibility", "stdout_visibility", "tests"}
    assert results.keys() == keys
    assert results["output_format"] == "text"  # as those of the tests, which need not be told
    assert (results["visibility"], results["stdout_visibility"]) == ("visible", "hidden")
    assert "It lists nothing." in results["output"]
    assert "a.ipynb: of 2 files of this student the newer b.ipynb was graded" in results["output"]
    lost = {test["name"]: test for test in results["tests"] if test["score"] < test["max_score"]}
    assert lost.keys() == {LOST}
    (test,) = lost.values()
    assert test.keys() == {"name", "score", "max_score", "output"}
    assert MISTAKE.says in " ".join(test["output"].split())


def test_gradescope_says_why_nothing_is_graded(autograder):
    (autograder / "submission/homework.pdf").write_bytes(b"%PDF-1.7 \xff")
    run = run_autograder(autograder)
    assert run.returncode == 0, run.stderr
    results = json.loads((autograder / "results/results.json").read_text("utf-8"))
    assert results["output"] == "homework.pdf: this is a PDF, not a notebook"
    assert [test["score"] for test in results["tests"]] == [0] * 5
    assert {test["output"] for test in results["tests"]} == {
        "No notebook was found that can be graded, but homework.pdf."
    }


def test_what_is_not_the_students_fault_is_no_zero(released, autograder):
    nbformat.write(with_a_mistake(released), autograder / "submission/a.ipynb")
    (autograder / "source/assignments/sandbox/kernel.py").write_text("raise SystemExit('full')\n")
    run = run_autograder(autograder)
    assert run.returncode != 0 and "no kernel starts: full" in run.stderr
    assert not list((autograder / "results").iterdir())


def test_classroom50_grades(released, unpacked, tmp_path):
    """In a checkout of a student who has put modules there by the names of ours."""
    bundle = unpacked("classroom50", NAME, "runtime") / NAME
    give_packages(bundle)
    checkout = tmp_path / "checkout"
    (checkout / "assignments").mkdir(parents=True)
    (checkout / ".git").mkdir()
    for trap in ("json.py", "torch.py", "assignments/__init__.py", ".git/x.ipynb"):
        (checkout / trap).write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    (checkout / "README.md").write_text("# Homework\n")
    nbformat.write(with_a_mistake(released), checkout / "homework.ipynb")

    run = subprocess.run(
        [sys.executable, bundle / "autograder.py"],
        cwd=checkout,
        env={"PATH": os.defpath, "GITHUB_REPOSITORY": "class/student", **RUNNER},
        capture_output=True,
        text=True,
    )

    assert run.returncode == 0, run.stderr
    assert not (tmp_path / "sprung").exists()
    result = json.loads((checkout / "result.json").read_text())
    check_result(result)
    lost = {test["test-name"]: test for test in result["tests"] if not test["passed"]}
    assert lost.keys() == {LOST} and result["score"] == 16
    body = (checkout / "release-body.md").read_text("utf-8")
    for text in (*(test["message"] for test in lost.values()), body):
        assert MISTAKE.says in " ".join(text.split())
    assert body.startswith(
        "### 16 of 20 points\n\n| Task | Points |\n|:--|:--|\n| 1. Two widths | "
    )
    assert "HIDDEN TESTS" not in body


def test_classroom50_reads_no_result_of_the_students_own(unpacked, tmp_path):
    """Where the grader fails there is none, and no points that it did not give."""
    bundle = unpacked("classroom50", NAME, "runtime") / NAME
    give_packages(bundle)
    (bundle / "assignments/sandbox/kernel.py").write_text("raise SystemExit('full')\n")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("result.json", "release-body.md"):
        (checkout / name).write_text('{"score": 20}')
    (checkout / "homework.ipynb").write_bytes(b"{}")
    run = subprocess.run(
        [sys.executable, bundle / "autograder.py"],
        cwd=checkout,
        env={"PATH": os.defpath, "GITHUB_REPOSITORY": "class/student"},
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert [path.name for path in checkout.iterdir()] == ["homework.ipynb"]


def test_classroom50_shows_what_stands_between_angle_brackets():
    """GitHub draws the body as Markdown, and takes <start> for an element outside of code."""
    words = ["<start> is missing.", "<lambda>() takes 2", "x<b>.ipynb: unread"]
    row = Row("1. Two widths", 0, 4, "\n\n".join(words[:2]))
    body = classroom50.body(Outcome([row], words[2:]))
    drawn = MarkdownIt("commonmark", {"html": True}).render(body)
    assert all(html.escape(each) in drawn for each in words)


def check_result(result):
    """The documented contract of result.json, field by field."""
    assert result["schema"] == "classroom50/result/v1"
    for field, variable in {
        "classroom": "CLASSROOM",
        "assignment": "ASSIGNMENT",
        "submission": "SUBMISSION_TAG",
        "commit": "COMMIT_URL",
        "release": "RELEASE_URL",
        "review": "REVIEW_URL",
    }.items():
        assert result[field] == RUNNER[variable]
    assert result["datetime"].endswith("Z")
    for each in (result, *result["tests"]):
        assert type(each["score"]) is type(each["max-score"]) is int
        assert 0 <= each["score"] <= each["max-score"]
    for test in result["tests"]:
        assert test["test-name"] and type(test["passed"]) is bool
    assert result["score"] == sum(test["score"] for test in result["tests"])
    assert result["max-score"] == sum(test["max-score"] for test in result["tests"])
