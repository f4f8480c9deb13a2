"""A class of sixty and the exports of Canvas and Moodle: every file and everybody has a row.

The exports are as the two programs write them: lib/gradebook_exporter.rb of Canvas,
grade/export/txt and mod/assign/gradingtable.php of Moodle. What is read back is what
lib/gradebook_importer.rb, grade/import/csv and mod/assign/feedback/offline read.
"""

import csv
import io
import re
from collections import Counter
from pathlib import Path

import pytest

from assignments.errors import GradingError
from assignments.grade import main
from assignments.intake.files import File, students
from assignments.intake.notebooks import Submission
from assignments.lms.account import Mark
from assignments.lms.files import write_marks
from assignments.lms.roster import read_roster

NAME, TITLE = "1-projection", "Assignment 1: Q, K and V"
FIRST = ["Ada", "Bob", "Cleo", "Dmitri", "Eva", "Farid", "Grace", "Hana", "Ivo", "Jun"]
LAST = ["Abel", "Brandt", "Costa", "Diaz", "Eriksen", "Fisher"]
# The first ones are those in whose rows something is odd.
CLASS = [
    ("Ada", "Lovelace"),  # handed in as Ada Byron
    ("Zoë", "Müller-Lüdenscheidt"),
    ("José María", "Núñez O’Neil"),
    ("Min-jun", "Kim"),
    ("Min-jun", "Kim"),  # another one
    ("Twice", "Listed"),
    *[(first, last) for last in LAST for first in FIRST][:54],
]
ABSENT = (7, 8, 9)
UNKNOWN = [("Nora", "Nobody"), ("Max", "Elsewhere")]


def handed_in(person: int) -> tuple[str, str]:
    return ("Ada", "Byron") if person == 0 else [*CLASS, *UNKNOWN][person]


def email(person: int) -> str:
    return f"student{person}@example.edu"


def download(lms: str, person: int) -> str:
    first, last = handed_in(person)
    if lms == "canvas":
        name = re.sub(r"[^a-z]", "", f"{last}{first}".lower())
        return f"{name}_{1000 + person}_{7000 + person}_{NAME}.ipynb"
    return f"{first} {last}_{1000 + person}_assignsubmission_file_/{NAME}.ipynb"


def marks_of(lms: str) -> list[Mark]:
    """One of each who is not absent, of two unknown, and two files that are not the newest."""
    people = [person for person in range(len(CLASS) + 2) if person not in ABSENT]
    files = [File((*download(lms, person).split("/"),), (float(person),)) for person in people]
    # Two more files under a name of their own, by whom the class knows: one older, one newer.
    files += [File((f"{email(20)}.ipynb",), (0.0,)), File((f"{email(21)}.ipynb",), (1000.0,))]
    whose = students(files, dict.fromkeys(files, NAME))
    marks = []
    for number, file in enumerate(files):
        student = whose[file]
        submission = Submission(file, assignment=NAME, identity=student, graded=True)
        row = {"student": student.name, "assignment": NAME, "file": file.name, "status": "graded"}
        row |= {"points": f"{number / 4:g}", "out_of": "20", "by_hand": "", "reason": ""}
        marks.append(Mark(submission, row, f"1. Two widths: a < b\nNumber {number}"))
    marks[30].submission.graded = False
    marks[30].row.update(status="not graded", points="", reason="the file is empty")
    marks[31].row.update(status="to be graded by hand", by_hand="explain")
    return marks


def table(rows: list[list[str]], delimiter: str, bom: bool) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode("utf-8-sig" if bom else "utf-8")


def canvas(delimiter=",", bom=False, one_name=True) -> bytes:
    def name(last: str, first: str) -> list[str]:
        return [f"{last}, {first}"] if one_name else [last, first]

    columns = [
        "ID",
        "SIS User ID",
        "SIS Login ID",
        "Section",
        "Notes",
        "Essay (41)",
        f"{NAME} (42)",
    ]
    header = [*(["Student"] if one_name else ["LastName", "FirstName"]), *columns, "Final Score"]
    empty = [""] * (len(header) - 4)
    rows = [header, [*empty, "", "Manual Posting", "", ""]]
    rows.append(["    Points Possible", *empty[1:], "", "100.00", "20.00", "(read only)"])
    for person, (first, last) in enumerate(CLASS):
        ids = [f"{1000 + person}", f"S{person}", email(person), "Section 1"]
        rows.append([*name(last, first), *ids, "a note", "66.00", "3.00", "41.00"])
    rows.append([*name("Student", "Test"), "9999", "", "f00d", "Section 1", "", "", "", ""])
    return table([*rows, rows[8]], delimiter, bom)


def gradebook(delimiter=",", bom=False) -> bytes:
    header = ["First name", "Last name", "ID number", "Institution", "Department", "Email address"]
    header += [
        "Quiz: Quiz 1 (Real)",
        f"Assignment: {NAME} (Real)",
        f"Assignment: {NAME} (Feedback)",
    ]
    rows = [[*header, "Last downloaded from this course"]]
    for person, (first, last) in enumerate(CLASS):
        ids = [f"S{person}", "", "", email(person)]
        rows.append([first, last, *ids, "9.00", "-", "", "1795413600"])
    return table([*rows, rows[6]], delimiter, bom)


def worksheet(delimiter=",", bom=False) -> bytes:
    header = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade"]
    header += ["Grade can be changed", "Last modified (submission)", "Last modified (grade)"]
    rows = [[*header, "Feedback comments"]]
    for person, (first, last) in enumerate(CLASS):
        ids = [f"Participant {1000 + person}", f"{first} {last}", email(person)]
        rows.append([*ids, "Submitted for grading", "", "20.00", "Yes", "-", "-", ""])
    return table([*rows, rows[6]], delimiter, bom)


EXPORTS = {
    "Canvas": ("canvas", canvas()),
    "Canvas with semicolons and a byte order mark": ("canvas", canvas(";", True)),
    "Canvas with two columns of names": ("canvas", canvas(bom=True, one_name=False)),
    "Moodle's gradebook": ("moodle", gradebook()),
    "Moodle's gradebook with semicolons": ("moodle", gradebook(";", True)),
    "Moodle's gradebook with tabs": ("moodle", gradebook("\t")),
    "a worksheet of Moodle": ("moodle", worksheet(bom=True)),
    "a worksheet of Moodle with semicolons": ("moodle", worksheet(";")),
}


def read(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def imported(path: Path, export: bytes) -> tuple[dict[str, set[str]], dict[str, str]]:
    """What the LMS takes from a file: points, and comments, by what it knows somebody by."""
    delimiter = next(d for d in ";\t," if d in export.decode("utf-8-sig").split("\n", 1)[0])
    header, *rows = read(path, delimiter)
    points, comments = {}, {}
    for row in rows:
        assert len(row) == len(header)
        cell = dict(zip(header, row, strict=True))
        if "Section" in cell:  # Canvas: these columns stand in this order, the marks behind
            names = ["Student"] if "Student" in cell else ["LastName", "FirstName"]
            info = [*names, "ID", "SIS User ID", "SIS Login ID", "Section"]
            assert header == [*info, f"{NAME} (42)"]
            if "Points Possible" in row[0] or {*row} <= {"", "Manual Posting"}:
                continue
            key, mark, comment = cell["ID"], cell[header[-1]], ""
        elif "Identifier" in cell:
            assert {"Grade", "Last modified (grade)"} <= set(header)
            key = cell["Identifier"].removeprefix("Participant ")
            mark, comment = cell["Grade"], cell["Feedback comments"]
        else:
            assert "Quiz: Quiz 1 (Real)" not in header  # nothing is taken back meanwhile
            key = f"{1000 + int(cell['ID number'][1:])}"
            mark = cell[f"Assignment: {NAME} (Real)"]
            comment = cell[f"Assignment: {NAME} (Feedback)"]
        points.setdefault(key, set()).add(mark)
        comments[key] = comment
    return points, comments


@pytest.fixture(params=EXPORTS)
def written(request, tmp_path):
    lms, export = EXPORTS[request.param]
    (tmp_path / "class.csv").write_bytes(export)
    (tmp_path / "grades-moodle.csv").touch()  # of another run
    marks = marks_of(lms)
    roster = read_roster(tmp_path / "class.csv")
    notes = write_marks(marks, {NAME: TITLE}, roster, tmp_path)
    assert (tmp_path / "grades-moodle.csv").exists() == (lms == "moodle")
    points, comments = imported(tmp_path / f"grades-{lms}.csv", export)
    header, *rows = read(tmp_path / "grades-left-out.csv")
    left_out = [
        dict(zip([header[0].lstrip("\ufeff"), *header[1:]], row, strict=True)) for row in rows
    ]
    return request.param, marks, points, comments, left_out, notes


def test_every_row_is_accounted_for(written):
    kind, marks, points, comments, left_out, _ = written
    by_name = "gradebook" in kind  # which has none of the numbers in the names of the downloads
    untouched = "3.00" if kind.startswith("Canvas") else ""
    files = {row["file"]: row["reason"] for row in left_out if row["file"]}
    absent = [row["student"] for row in left_out if not row["file"]]
    assert len(files) + len(absent) == len(left_out)

    given = set()
    for mark in marks:
        number = mark.submission.file.name
        person = int(re.search(r"(?:_1|student)(\d+)", number)[1])
        if mark.row["file"] in files:
            continue
        assert points[f"{1000 + person}"] == {mark.row["points"]}
        if not kind.startswith("Canvas"):
            assert comments[f"{1000 + person}"].startswith("1. Two widths: a &lt; b<br>Number ")
        given.add(person)
    # Every file has a mark or a row, and every mark is that of one file.
    assert len(given) + len(files) == len(marks) == 61

    # Everybody has a mark or a row.
    assert {f"{1000 + person}" for person in given} <= points.keys()
    others = {key: mark for key, mark in points.items() if int(key) - 1000 not in given}
    if by_name:  # an empty cell would take a grade away
        assert not others
    else:
        others.pop("9999", None)  # the test student of Canvas
        assert set(map(frozenset, others.values())) == {frozenset({untouched})}
        assert len(others) + len(given) == len(CLASS)
    without = [f"{last}, {first}" for first, last in (CLASS[person] for person in ABSENT)]
    if by_name:
        without.append("Lovelace, Ada")
    assert Counter(map(frozenset, map(str.split, (n.replace(",", "") for n in absent)))) == Counter(
        map(frozenset, map(str.split, (n.replace(",", "") for n in without)))
    )


def test_the_odd_ones(written):
    kind, marks, points, _, left_out, notes = written
    by_name = "gradebook" in kind
    reasons = {row["file"]: row["reason"] for row in left_out}

    def reason(person: int) -> str:
        return reasons[next(m.row["file"] for m in marks if f"_{1000 + person}_" in m.row["file"])]

    for unknown in (60, 61):
        assert reason(unknown) == "nobody in class.csv is this student"
    for twice in (20, 21):  # one of the two may be somebody else's
        said = reasons[f"{email(twice)}.ipynb"]
        assert said == reason(twice) and "keep one of them" in said
        assert f"{email(twice)}.ipynb" in said
    assert reasons[marks[30].row["file"]] == "the file is empty"
    assert reasons[marks[31].row["file"]] == "your points by hand are still to come: explain"
    if by_name:
        for same in (3, 4):
            assert reason(same).startswith("class.csv has 2 whom this can be: Kim, Min-jun (")
        assert reason(0) == "nobody in class.csv is this student"
        assert points.keys() >= {"1001", "1002", "1005"}  # accents, and twice in the list
    else:
        assert points.keys() >= {str(1000 + person) for person in range(6)}
        assert any(line.startswith(("Ada Byron is ", "byronada is ")) for line in notes)
        assert len([line for line in notes if " is " in line and "by the same number" in line]) == 1
    assert "grades-left-out.csv: " in notes[-1]


def test_the_same_bytes_twice(tmp_path):
    (tmp_path / "class.csv").write_bytes(canvas())
    seen = set()
    for _ in range(2):
        write_marks(
            marks_of("canvas"), {NAME: TITLE}, read_roster(tmp_path / "class.csv"), tmp_path
        )
        seen.add(tuple((tmp_path / f"grades-{n}.csv").read_bytes() for n in ("canvas", "left-out")))
    assert len(seen) == 1


def test_without_an_export(tmp_path):
    marks = marks_of("canvas")
    notes = write_marks(marks, {NAME: TITLE}, None, tmp_path)
    header, points_possible, *rows = read(tmp_path / "grades-canvas.csv")
    assert header == ["Student", "ID", "SIS Login ID", "Section", NAME]
    assert points_possible == ["    Points Possible", "", "", "", "20"]
    assert len(rows) == 61 and rows[1][1] == "1001" and rows[1][-1] == "0.25"
    assert len(read(tmp_path / "grades-left-out.csv")) == 1 + 2
    assert not (tmp_path / "grades-moodle.csv").exists()  # the numbers are Canvas's
    assert notes[0] == "grades-canvas.csv, for Canvas's gradebook: 59 marks"

    write_marks(marks_of("moodle"), {NAME: TITLE}, None, tmp_path)
    header, *rows = read(tmp_path / "grades-moodle.csv")
    assert header[:3] == ["Identifier", "Full name", "Grade"] and rows[0][0] == "Participant 1000"

    named = [mark for mark in marks if not mark.submission.identity.lms]
    write_marks(named, {NAME: TITLE}, None, tmp_path)
    header, *rows = read(tmp_path / "grades-moodle.csv")
    assert header == ["Full name", "Username", f"{NAME} (Real)", f"{NAME} (Feedback)"]
    assert rows[0][1] == email(20) and (tmp_path / "grades-canvas.csv").exists()


def test_columns_and_scales_that_differ(tmp_path):
    """The column may have the title of the notebook, other points than its tests, or be missing."""

    def write(export: bytes) -> tuple[list[str], list[list[str]]]:
        (tmp_path / "class.csv").write_bytes(export)
        roster = read_roster(tmp_path / "class.csv")
        notes = write_marks(marks_of("canvas"), {NAME: TITLE}, roster, tmp_path)
        return notes, read(tmp_path / "grades-canvas.csv")

    titled = canvas().replace(f"{NAME} (42)".encode(), f'"{TITLE} (42)"'.encode())
    notes, rows = write(titled.replace(b",20.00,", b",100.00,"))
    assert rows[0][-1] == f"{TITLE} (42)"
    assert any("gives 100.00 points" in line and "out of 20" in line for line in notes)
    notes, rows = write(canvas().replace(NAME.encode(), b"Homework"))
    assert rows[0][-1] == NAME and rows[2][-1] == "20"
    assert f"class.csv has no column for {NAME}: {NAME} is new" in notes


@pytest.mark.parametrize(
    ("gives", "is_told"),
    [
        *(("20", False), ("20.00", False), ("20,0", False)),
        *(("2", True), ("120", True), ("200", True), ("2000", True), ("20.50", True)),
    ],
)
@pytest.mark.parametrize("kind", ["Canvas", "a worksheet of Moodle with semicolons"])
def test_a_scale_is_the_same_or_it_is_told(kind, gives, is_told, tmp_path):
    lms, write = ("canvas", canvas) if kind == "Canvas" else ("moodle", worksheet)
    (tmp_path / "class.csv").write_bytes(write(";").replace(b";20.00;", f";{gives};".encode()))
    roster = read_roster(tmp_path / "class.csv")
    notes = write_marks(marks_of(lms), {NAME: TITLE}, roster, tmp_path)
    assert any(f"gives {gives} points for {NAME}" in line for line in notes) == is_told


# The school has given Bob the number that the LMS has given Ada, and the other way round.
CROSSED = {
    "Canvas": "Student,ID,SIS User ID,SIS Login ID,Section\n"
    '"Lovelace, Ada",12,13,al,A\n"Brandt, Bob",13,12,bob,A\nBob,14,15,b,A\n',
    "a worksheet of Moodle": "Identifier,Full name,Username,ID number,Grade,Last modified (grade)\n"
    "Participant 12,Ada Lovelace,al,13,,\nParticipant 13,Bob Brandt,bob,12,,\n"
    "Participant 14,Bob,b,15,,\n",
}


@pytest.mark.parametrize(
    ("kind", "name", "whose"),
    [
        ("Canvas", "lovelaceada_12_7000_x.ipynb", "Ada"),
        ("Canvas", "brandtbob_13_7000_x.ipynb", "Brandt"),
        ("Canvas", "Bob Brandt_12_assignsubmission_file_/x.ipynb", "Brandt"),  # Moodle's number
        ("a worksheet of Moodle", "Ada Lovelace_12_assignsubmission_file_/x.ipynb", "Ada"),
        ("a worksheet of Moodle", "Bob Brandt_13_assignsubmission_file_/x.ipynb", "Brandt"),
        ("a worksheet of Moodle", "bob_12_7000_x.ipynb", "Brandt"),  # Canvas's number
        # as the school calls him, by its number or by an id, which counts before a name
        *((kind, name, "Brandt") for kind in CROSSED for name in ("12.ipynb", "bob.ipynb")),
        *((kind, "14.ipynb", None) for kind in CROSSED),
    ],
)
def test_no_number_is_taken_for_one_of_another_kind(kind, name, whose, tmp_path):
    (tmp_path / "class.csv").write_text(CROSSED[kind], "utf-8")
    file = File((*name.split("/"),), (0.0,))
    found = read_roster(tmp_path / "class.csv").find(students([file], {})[file])
    assert [whose in person.name for person in found] == [True] * bool(whose)


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        *((name, 1) for name in ("Zoe Muller Ludenscheidt", "MÜLLER-LÜDENSCHEIDT, ZOË", "S1")),
        *((f"Jose Maria Nunez {name}", 2) for name in ("O'Neil", "O’Neil", "ONeil")),
    ],
)
def test_spellings_of_a_name(name, whose, tmp_path):
    (tmp_path / "class.csv").write_bytes(gradebook())
    file = File((f"{name}.ipynb",), (0.0,))
    [person] = read_roster(tmp_path / "class.csv").find(students([file], {})[file])
    first, last = CLASS[whose]
    assert person.name == f"{last}, {first}"


def test_two_of_a_name_and_one_in_the_list(tmp_path):
    """Moodle tells them apart in its download; its gradebook has one of them, and not which."""
    (tmp_path / "class.csv").write_bytes(gradebook().replace(b"Min-jun,Kim,S4", b"Other,Kim,S4"))
    marks = marks_of("moodle")[:5]
    write_marks(marks, {NAME: TITLE}, read_roster(tmp_path / "class.csv"), tmp_path)
    left_out = (tmp_path / "grades-left-out.csv").read_text("utf-8-sig")
    assert left_out.count("two hand in under this name, and class.csv has one: Kim, Min-jun") == 2
    assert "Kim" not in (tmp_path / "grades-moodle.csv").read_text("utf-8")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not an export"),
        (b"Name,Mark\nada,1\n", "Its first line is 'Name,Mark'"),
        (b"PK\3\4\xff\xfe", "is not a CSV in UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_export(data, says, tmp_path):
    if data is not None:
        (tmp_path / "class.csv").write_bytes(data)
    with pytest.raises(GradingError) as raised:
        read_roster(tmp_path / "class.csv")
    assert says in str(raised.value)


def test_a_worksheet_is_for_one_assignment(tmp_path, capsys):
    (tmp_path / "class.csv").write_bytes(worksheet())
    assert main([str(tmp_path), "--roster", str(tmp_path / "class.csv")]) == 2
    assert "Say for which: make grade ASSIGNMENT=1-projection" in capsys.readouterr().out


def test_two_people_with_one_number_are_said(tmp_path):
    """Else both would get the mark of whoever handed in."""
    text = 'Student,ID,Section\n"Lovelace, Ada",12,A\n"Brandt, Bob",12,A\n'
    (tmp_path / "class.csv").write_text(text, "utf-8")
    with pytest.raises(GradingError, match="gives 12 to two people, Lovelace, Ada and Brandt, Bob"):
        read_roster(tmp_path / "class.csv")
