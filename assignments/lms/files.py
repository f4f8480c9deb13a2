"""The files that Canvas and Moodle import, and a list of all that is not in them.

Every file that was handed in has its mark in the LMS's file, or a row in `grades-left-out.csv` that
says why not. So has everybody in the class list. The LMS's file is its own export again, with the
marks of this run in it: what it says of others stays as it is.
"""

import csv
import html
import re
from collections.abc import Iterable
from pathlib import Path

from assignments.lms.account import COLUMNS, Mark, Placed, absent, place, renamed
from assignments.lms.roster import CANVAS, GRADEBOOK, POINTS_POSSIBLE, WORKSHEET, Roster, words
from assignments.report import SIGNS, no_formula, write_csv

LEFT_OUT = "grades-left-out.csv"
COMMENTS = "Feedback comments"  # of Moodle's worksheet, where the assignment takes them


def write_marks(
    marks: list[Mark], titles: dict[str, str], roster: Roster | None, root: Path
) -> list[str]:
    """Write a file for the roster's LMS, or without one for each, and the rows that are left out.

    titles: the names of the assignments that were graded, with the titles of their notebooks.

    Returns:
        What there is to say, a line each.
    """
    for name in ("grades-canvas.csv", "grades-moodle.csv", LEFT_OUT):
        (root / name).unlink(missing_ok=True)  # of another run
    told, left_out = [], []
    for each in [roster] if roster else rosters_of(marks):
        path = root / f"grades-{each.format.lms}.csv"
        placed, left_out = place(marks, each)
        if roster:
            left_out += absent(marks, titles, roster)
        told.append(f"{path.name}, for {each.format.told}: {len(placed)} marks")
        told += fill(each, placed, titles, path) + renamed(placed)
    if left_out:
        write_csv(left_out, root / LEFT_OUT, COLUMNS)
        told.append(f"{LEFT_OUT}: {len(left_out)} rows that have no mark there, and why")
    return told


def rosters_of(marks: list[Mark]) -> Iterable[Roster]:
    """A list for each LMS of those who handed something in, by what their files are called."""
    students = dict.fromkeys(mark.submission.identity for mark in marks)
    names = {student: no_formula(student.known_as) for student in students}
    seen = {student.lms for student in students} - {""} or {"canvas", "moodle"}
    if "canvas" in seen:
        number = {s: s.number if s.lms == "canvas" else "" for s in students}
        rows = [[names[s], number[s], no_formula(s.name), ""] for s in students]
        header = ["Student", "ID", "SIS Login ID", "Section"]
        yield Roster("", CANVAS, ",", header, [[f"    {POINTS_POSSIBLE}", "", "", ""], *rows])
    graded = {mark.submission.assignment for mark in marks if mark.row["status"] == "graded"}
    if seen == {"moodle"} and len(graded) == 1:
        header = ["Identifier", "Full name", "Grade", "Last modified (grade)", COMMENTS]
        rows = [[f"Participant {s.number}", names[s], "", "", ""] for s in students]
        yield Roster("", WORKSHEET, ",", header, rows)
    elif "moodle" in seen:
        rows = [[names[s], no_formula(s.name)] for s in students]
        yield Roster("", GRADEBOOK, ",", ["Full name", "Username"], rows)


def fill(roster: Roster, placed: Placed, titles: dict[str, str], path: Path) -> list[str]:
    """Write the roster with the marks in it. Returns what there is to say."""
    form, header, remarks = roster.format, list(roster.header), []
    rows = {id(row): list(row) for row in roster.rows}
    known = {form.number, *form.names, *form.ids, *form.kept}
    used = [i for i, name in enumerate(header) if form is WORKSHEET or name in known]
    scales = [rows[id(row)] for row in roster.rows if POINTS_POSSIBLE in row[0]]
    for assignment, title in titles.items():
        given = [pair for (_, name), pair in placed.items() if name == assignment]
        if not given:
            continue
        out_of = given[0][1].row["out_of"]
        columns = columns_for(roster, assignment, title)
        for column in columns:
            if column not in header:
                header.append(column)
                for row in rows.values():
                    row.append(out_of if POINTS_POSSIBLE in row[0] else "")
                if roster.name:
                    remarks.append(f"{roster.name} has no column for {assignment}: {column} is new")
        cells = [header.index(column) for column in columns]
        used += [cell for cell in cells if cell not in used]
        for person, mark in given:
            comment = as_html(mark.comment)
            for row in person.rows:
                for cell, value in zip(cells, (mark.row["points"], comment), strict=False):
                    rows[id(row)][cell] = value
        remarks += scale(roster, {row[cells[0]] for row in scales}, assignment, out_of)
    if form is WORKSHEET and COMMENTS not in header:
        remarks.append(f"{roster.name} has no column {COMMENTS}, so the comments are left out")
    marked = {id(row) for person, _ in placed.values() for row in person.rows}
    with path.open("w", encoding="utf-8", newline="") as file:
        # no byte order mark: behind one Canvas does not know its column LastName
        table = csv.writer(file, delimiter=roster.delimiter)
        table.writerow([header[i] for i in used])
        for key, row in rows.items():
            # Moodle's gradebook takes an empty cell for a grade that was taken away
            if form is not GRADEBOOK or key in marked:
                table.writerow([row[i] for i in used])
    return remarks


def as_html(comment: str) -> str:
    """A comment as the LMS takes it, with entities for signs that `no_formula` is about."""
    text = html.escape(comment, quote=False).replace("\n", "<br>")
    return re.sub(
        rf'(^|[;\t\r])[\s"{SIGNS}]+',
        lambda run: re.sub(f"[{SIGNS}]", lambda sign: f"&#{ord(sign[0])};", run[0]),
        text,
    )


def scale(roster: Roster, largest: set[str], assignment: str, out_of: str) -> list[str]:
    """A warning for each other number of points that the LMS gives for an assignment."""
    if roster.format is WORKSHEET:
        largest = {roster.cell(row, "Maximum Grade") for row in roster.rows}
    return [
        f"{roster.name} gives {other} points for {assignment}, and these marks are out of "
        f"{out_of}: give the assignment {out_of} points in the LMS before you import"
        for other in sorted(largest - {""})
        if not re.fullmatch(rf"{re.escape(out_of)}([.,]0+)?", other)
    ]


def columns_for(roster: Roster, assignment: str, title: str) -> list[str]:
    """The columns of an assignment's points and, where the LMS takes one, comment."""
    if roster.format is WORKSHEET:
        return ["Grade", *({COMMENTS} & set(roster.header))]
    wanted = [words(assignment), words(title)]
    found = [
        column
        for column in roster.header
        if words(re.sub(r"^Assignment: | \((?:\d+|Real)\)$", "", column)) in wanted
    ]
    if roster.format is CANVAS:
        return found if len(found) == 1 else [assignment]
    points = found[0] if len(found) == 1 else f"{assignment} (Real)"
    return [points, points.removesuffix(" (Real)") + " (Feedback)"]
