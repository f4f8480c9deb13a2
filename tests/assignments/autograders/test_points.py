"""A bundle gives what `make grade` gives, test by test: to solution, stub and mistakes.

A bundle is a copy of what `make grade` runs; here it grades of each task the first mistake.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from assignments.course import tasks
from assignments.sandbox import landlock
from tests.assignments.autograders.conftest import give_packages
from tests.assignments.conftest import GRADED
from tests.assignments.submissions import source
from tests.assignments.test_answers import following_test, points

MANY = Path(__file__).with_name("grade_many.py")
RUNNER = {  # of what Classroom 50 sets, what its contract needs
    "CLASSROOM": "attention",
    "ASSIGNMENT": "homework",
    "SUBMISSION_TAG": "submit/2027-01-01T00-00-00Z-0123456",
    "COMMIT_URL": "https://example.invalid/commit",
    "RELEASE_URL": "https://example.invalid/release",
    "REVIEW_URL": "https://example.invalid/review",
}

pytestmark = pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")


def test_the_points_of_make_grade(graded_bank, unpacked, tmp_path):
    bank, name = graded_bank, GRADED
    mistaken, group = next(iter(bank.mistakes.items()))  # a mistake for each task
    students = ["reference", "stub", mistaken]
    for student in students:
        (tmp_path / "in" / student).mkdir(parents=True)
        shutil.copy(bank.handed_in / f"{student}.ipynb", tmp_path / "in" / student / "mine.ipynb")
    folder = unpacked("gradescope", name, "autograder/source")
    give_packages(folder)
    run = subprocess.run(
        [folder / ".venv/bin/python", "-W", "ignore", "-P", MANY, tmp_path / "in"],
        env={"PATH": os.defpath, "PYTHONPATH": str(folder)} | RUNNER,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    printed = json.loads(run.stdout.splitlines()[-1])
    assert printed["code"] == f"{folder}/assignments/__init__.py"
    results = printed["results"]
    assert results.keys() == set(students)
    task_of, (tests, by_hand) = tasks(source(name)), points(name)
    by_machine = {task_of[test]: most for test, most in tests.items()}
    full = sum(by_machine.values())
    for student, files in results.items():
        row = bank.rows[student]
        due = {task_of[test]: float(row[test]) for test in tests}
        marked = files["gradescope"]["tests"]
        assert {each["name"]: each["score"] for each in marked} == due, student
        assert {each["name"]: each["max_score"] for each in marked} == by_machine
        assert {bool(each["output"]) for each in marked if each["score"]} <= {False}
        result = files["classroom50"]
        rows = {each["test-name"]: each for each in result["tests"]}
        assert {task: row["score"] for task, row in rows.items()} == due, student
        assert {task: row["max-score"] for task, row in rows.items()} == by_machine
        assert all(row["passed"] == (due[task] == by_machine[task]) for task, row in rows.items())
        assert (result["score"], result["max-score"]) == (sum(due.values()), full)
        assert ("by hand" in files["body"]) == bool(by_hand)
    assert results["reference"]["classroom50"]["score"] == full
    assert results["stub"]["classroom50"]["score"] == 0
    outputs = {test["name"]: test["output"] for test in results[mistaken]["gradescope"]["tests"]}
    body = " ".join(results[mistaken]["body"].split())
    for mistake in group:
        says = " ".join(mistake.says.split())
        task = task_of[following_test(name, mistake.cell)]
        assert says in " ".join(outputs[task].split())
        assert says in body
