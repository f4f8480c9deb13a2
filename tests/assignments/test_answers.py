"""Each mistake loses its points and is named, and each right answer keeps them.

All of them are judged here in this process, by the cells of the notebook alone. One assignment's go
through `make grade` too: kernels, sandbox, nbgrader, the table of marks and the pages.
"""

import csv
import html
import linecache
import re
from functools import cache

import pytest
import torch

from assignments.course import SEED_CELL, grade_id, is_test, with_seed
from assignments.sandbox import landlock
from tests.assignments.conftest import GRADED, NAMES, SEED, side_by_side
from tests.assignments.submissions import Answer, bank, source


def points(name):
    """The points of the test cells, and those that a person gives."""
    graded = [c for c in source(name).cells if c.metadata.get("nbgrader", {}).get("grade")]
    by_machine = {grade_id(c): c.metadata.nbgrader.points for c in graded if c.cell_type == "code"}
    return by_machine, sum(c.metadata.nbgrader.points for c in graded) - sum(by_machine.values())


@cache  # each answer asks
def grade_ids(name):
    return [grade_id(cell) for cell in source(name).cells]


def following_test(name, solution):
    """The test cell that follows a solution."""
    names = grade_ids(name)
    return next(n for n in names[names.index(solution) :] if n and n.startswith("test-"))


def plain(text):
    """On one line, without the marks of code, which the page draws."""
    return " ".join(text.replace("`", "").split())


def judged(name: str, group: list[Answer]) -> dict[str, str]:
    """What each test says to the solution with these answers in it; no test that is passed."""
    written = {answer.cell: answer.code for answer in group}
    names, said = {"__name__": "__main__"}, {}
    torch.manual_seed(0)
    for cell in with_seed(source(name), SEED).cells:
        named = grade_id(cell)
        if cell.cell_type != "code" or named is None:  # the setup, a cell to play with
            continue
        code, file = written.get(named, cell.source), f"<{name}: {named}>"
        linecache.cache[file] = len(code), None, code.splitlines(keepends=True), file
        try:
            exec(compile(code, file, "exec"), names)
        except Exception as error:
            assert named != SEED_CELL, error
            if is_test(cell):
                said[named] = str(error)
    return said


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_judged_rightly(name):
    mistakes, rights = bank(name)
    assert len(mistakes) >= 8 and len(rights) >= 2
    assert judged(name, []) == {}
    for group in side_by_side(rights):
        assert judged(name, group) == {}, [answer.name for answer in group]
    for group in side_by_side(mistakes):
        said = judged(name, group)
        due = {following_test(name, mistake.cell): mistake for mistake in group}
        assert said.keys() == due.keys(), [mistake.name for mistake in group]
        for test, mistake in due.items():
            assert plain(mistake.says) in plain(said[test]), f"{mistake.name}: {said[test]}"
            assert not re.findall(r"\$[^$]+\$", said[test]), "a feedback page draws no LaTeX"


@pytest.mark.parametrize("name", NAMES)
def test_it_has_twenty_points(name):
    by_machine, by_hand = points(name)
    assert sum(by_machine.values()) + by_hand == 20


@pytest.mark.skipif(not landlock.version(), reason="this system has no Landlock")
def test_the_marks_are_right(graded_bank):
    folder, _, mistakes, rights, rows = graded_bank
    assert rows.keys() == {"reference", "stub", *mistakes, *rights}
    by_machine, by_hand = points(GRADED)
    seen = {student: float(row["points"]) for student, row in rows.items()}
    assert by_hand and seen["stub"] == 0 and rows["stub"]["by_hand"] == ""
    pages = {}
    for student in rows:
        path = folder / "grades/feedback" / student / GRADED / f"{GRADED}.html"
        pages[student] = plain(html.unescape(re.sub("<[^>]+>", "", path.read_text("utf-8"))))
        assert not re.findall(r"\$[^$]+\$", pages[student]), student
    for student in ("reference", *rights):
        assert seen[student] == sum(by_machine.values()), f"{student}: {pages[student]}"
        assert rows[student]["by_hand"]
    for student, group in mistakes.items():
        lost = {cell for cell in by_machine if float(rows[student][cell]) < by_machine[cell]}
        assert lost == {following_test(GRADED, mistake.cell) for mistake in group}
        for mistake in group:
            assert float(rows[student][following_test(GRADED, mistake.cell)]) == 0, mistake.name
            assert plain(mistake.says) in pages[student], f"{mistake.name}: {pages[student]}"
    with (folder / "grades/grades.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert {row["student"]: float(row["points"]) for row in table} == seen
