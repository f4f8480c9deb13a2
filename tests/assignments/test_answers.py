"""Each assignment is graded over its reference, its stub, its mistakes and other right answers."""

import csv
import html
import re

import pytest

from assignments.course import grade_id
from assignments.sandbox import landlock
from tests.assignments.conftest import NAMES, answers, source

pytestmark = pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")


def points(name):
    """The points of the test cells, and those that a person gives."""
    graded = [c for c in source(name).cells if c.metadata.get("nbgrader", {}).get("grade")]
    by_machine = {grade_id(c): c.metadata.nbgrader.points for c in graded if c.cell_type == "code"}
    return by_machine, sum(c.metadata.nbgrader.points for c in graded) - sum(by_machine.values())


def following_test(name, solution):
    """The test cell that follows a solution."""
    names = [grade_id(cell) for cell in source(name).cells]
    return next(n for n in names[names.index(solution) :] if n and n.startswith("test-"))


def feedback_text(folder, student, name):
    """The text of a student's feedback page, as `plain`."""
    page = (folder / "grades/feedback" / student / name / f"{name}.html").read_text("utf-8")
    return plain(html.unescape(re.sub("<[^>]+>", "", page)))


def plain(text):
    """On one line, without the marks of code, which the page draws."""
    return " ".join(text.replace("`", "").split())


@pytest.mark.parametrize("name", NAMES)
def test_no_page_shows_a_formula_as_it_is_written(graded_bank, name):
    """A feedback page draws no LaTeX."""
    bank = graded_bank(name)
    for student in bank.rows:
        shown = feedback_text(bank.folder, student, name)
        assert not re.findall(r"\$[^$]+\$", shown), student


@pytest.mark.parametrize("name", NAMES)
def test_the_marks_are_right(graded_bank, name):
    known = answers(name)
    assert len(known.MISTAKES) >= 8 and len(known.RIGHT) >= 2
    folder, _, mistakes, rights, rows = graded_bank(name)

    assert rows.keys() == {"reference", "stub", *mistakes, *rights}
    by_machine, by_hand = points(name)
    full = sum(by_machine.values())
    print(f"{name}: {len(rows)} notebooks, {full} points and {by_hand} by hand")
    assert full + by_hand == 20
    seen = {student: float(row["points"]) for student, row in rows.items()}
    assert seen["stub"] == 0 and rows["stub"]["by_hand"] == ""
    for student in ("reference", *rights):
        assert seen[student] == full, f"{student}: {feedback_text(folder, student, name)}"
        assert bool(rows[student]["by_hand"]) == bool(by_hand)
    for student, group in mistakes.items():
        page = feedback_text(folder, student, name)
        lost = {cell for cell in by_machine if float(rows[student][cell]) < by_machine[cell]}
        for mistake in group:
            cell = following_test(name, mistake.cell)
            assert float(rows[student][cell]) == 0, f"{mistake.name} has the points of {cell}"
            assert plain(mistake.says) in page, f"{mistake.name} is not named in: {page}"
        assert lost == {following_test(name, mistake.cell) for mistake in group}
    with (folder / "grades/grades.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert {row["student"]: float(row["points"]) for row in table} == seen
