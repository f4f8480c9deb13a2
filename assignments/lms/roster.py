"""A class list as Canvas or Moodle exports it, and who in it handed something in."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from assignments.errors import GradingError
from assignments.intake.files import Student

DELIMITERS = ",;\t"
POINTS_POSSIBLE = "Points Possible"  # of Canvas: a row that says what each column is out of
TEST_STUDENT = {"student, test", "test student"}  # of Canvas: the teacher in a student's place


@dataclass(frozen=True)
class Format:
    """An export that its LMS imports again.

    lms: "canvas" or "moodle".
    told: what it is, in words.
    needed: the columns by which it is recognised.
    number: the column with the number that the LMS writes into the names of downloads.
    names: the columns of the name, the last name before the first.
    ids: other columns, each of which names one person.
    kept: further columns that the import reads.
    """

    lms: str
    told: str
    needed: frozenset[str]
    number: str
    names: tuple[str, ...]
    ids: tuple[str, ...]
    kept: tuple[str, ...] = ()


CANVAS = Format(
    lms="canvas",
    told="Canvas's gradebook",
    needed=frozenset({"ID", "Section"}),
    number="ID",
    names=("Student", "LastName", "FirstName"),
    ids=("SIS User ID", "SIS Login ID", "Integration ID"),
    kept=("Root Account", "Section"),
)
WORKSHEET = Format(
    lms="moodle",
    told="a grading worksheet of Moodle",
    needed=frozenset({"Identifier", "Grade", "Last modified (grade)"}),
    number="Identifier",
    names=("Full name",),
    ids=("Username", "ID number", "Email address"),
    kept=("Grade", "Maximum Grade", "Last modified (grade)", "Feedback comments"),
)
GRADEBOOK = Format(
    lms="moodle",
    told="Moodle's gradebook",
    needed=frozenset({"First name", "Email address"}),
    number="",
    names=("Full name", "Last name", "Surname", "First name"),
    ids=("Username", "ID number", "Email address"),
    kept=("Last downloaded from this course",),
)
FORMATS = (CANVAS, WORKSHEET, GRADEBOOK)


@dataclass
class Person:
    """Somebody in the list, with all of their rows: an export may name one person twice."""

    name: str
    number: str
    ids: frozenset[str]
    keys: frozenset[str]
    rows: list[list[str]] = field(default_factory=list)


@dataclass
class Roster:
    """An export, as it was read.

    name: the file's.
    header, rows: its cells. The rows are those of the people and, of Canvas, some others.
    """

    name: str
    format: Format
    delimiter: str
    header: list[str]
    rows: list[list[str]]

    def __post_init__(self) -> None:
        self.people = list(self._people())

    def _people(self) -> Iterable[Person]:
        known = {}
        for row in self.rows:
            name = ", ".join(self.cells(row, self.format.names))
            number = "".join(re.findall(r"\d+$", self.cell(row, self.format.number)))
            if name.casefold() in TEST_STUDENT or POINTS_POSSIBLE in name or not (name or number):
                continue
            ids = [text.casefold() for text in self.cells(row, self.format.ids)]
            person = Person(name, number, frozenset(ids), keys(name))
            same = number or next(iter(ids), id(row))
            first = known.setdefault(same, person)
            if not first.keys & person.keys:
                raise GradingError(
                    f"{self.name} gives {same} to two people, {first.name} and {name}, so a "
                    "mark could belong to either. Correct one of them, in the LMS or in the file."
                )
            first.rows.append(row)
        return known.values()

    def cell(self, row: list[str], column: str) -> str:
        return row[self.header.index(column)].strip() if column in self.header else ""

    def cells(self, row: list[str], columns: Iterable[str]) -> list[str]:
        """What stands in those of the columns that are there and not empty."""
        return [text for column in columns if (text := self.cell(row, column))]

    def find(self, student: Student) -> list[Person]:
        """Everybody whom the student can be.

        The LMS's own number decides alone, where both sides have it: another number is another
        person, whatever the name. Else an id decides, else the name.
        """
        if student.lms == self.format.lms and self.format.number:
            return [person for person in self.people if person.number == student.number]
        mine = {student.name.casefold(), student.known_as.casefold()}
        by_id = [person for person in self.people if mine & person.ids]
        return by_id or [p for p in self.people if keys(student.known_as) & p.keys]


def keys(name: str) -> frozenset[str]:
    """What two spellings of a name have in common: accents, capitals and the order may differ.

    One of them runs the words together, last name first, as Canvas does in the names of files.
    """
    parts = words(name)
    return frozenset({" ".join(sorted(parts)), "".join(parts)} - {""})


def words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(c for c in plain if not unicodedata.combining(c) and c not in "'’")
    return re.findall(r"[^\W_]+", plain)


def read_roster(path: Path) -> Roster:
    """Read an export of Canvas or Moodle.

    Raises:
        GradingError: the file is none, or is no longer one, or gives two people one number.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise GradingError(f"ROSTER={path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise GradingError(
            f"ROSTER={path} is not a CSV in UTF-8. Export it from the LMS once more, as CSV, and "
            "leave it as it comes: a spreadsheet may save it in another form."
        ) from None
    for delimiter in DELIMITERS:
        table = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [row for row in table if any(map(str.strip, row))]
        header = [column.strip() for column in rows[0]] if rows else []
        for form in FORMATS:
            if form.needed <= set(header):
                filled = [row + [""] * (len(header) - len(row)) for row in rows[1:]]
                return Roster(path.name, form, delimiter, header, filled)
    first = text.split("\n", 1)[0].strip()[:200]
    raise GradingError(
        f"ROSTER={path} is not an export that is known here. Its first line is {first!r}; expected "
        "are the columns "
        + "; or ".join(f"{', '.join(sorted(form.needed))} ({form.told})" for form in FORMATS)
        + ". Export it from the LMS once more, in English, as CSV."
    )
