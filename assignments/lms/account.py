"""Whose mark each is, and a row for every file and everybody without a mark."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from assignments.intake.notebooks import Submission
from assignments.lms.roster import Person, Roster, keys

COLUMNS = ["student", "assignment", "file", "points", "out_of", "reason"]


@dataclass(frozen=True)
class Mark:
    """What a submission got.

    row: the submission's row of the CSV.
    comment: what the student reads beside the points, a paragraph a line.
    """

    submission: Submission
    row: dict[str, str]
    comment: str = ""


Placed = dict[tuple[int, str], tuple[Person, Mark]]  # by the person's id() and the assignment


def place(marks: list[Mark], roster: Roster) -> tuple[Placed, list[dict[str, str]]]:
    """Find the person of each mark. Returns these pairs, and the rows of those without a place."""
    placed, left_out, rivals = {}, [], {}
    for mark in marks:
        found = roster.find(mark.submission.identity)
        if reason := no_place(mark, found, roster):
            left_out.append(left_row(mark, reason))
        else:
            rivals.setdefault((id(found[0]), mark.submission.assignment), []).append(mark)
    people = {id(person): person for person in roster.people}
    for key, of_one in rivals.items():
        person = people[key[0]]
        if len(of_one) == 1:
            placed[key] = person, of_one[0]
            continue
        if len({mark.submission.identity.number for mark in of_one} - {""}) > 1:
            reason = f"two hand in under this name, and {roster.name} has one: {told(person)}"
        else:  # any may be somebody else's, who wants to take the place of the others
            files = " and ".join(sorted(mark.row["file"] for mark in of_one))
            reason = f"{files} lead to {told(person)} in {roster.name}: keep one of them"
        left_out += [left_row(mark, reason) for mark in of_one]
    return placed, left_out


def no_place(mark: Mark, found: list[Person], roster: Roster) -> str:
    """Why a mark cannot go to the LMS, empty where it can."""
    if not mark.submission.graded:
        return mark.row["reason"]
    if mark.row["status"] != "graded":
        return f"your points by hand are still to come: {mark.row['by_hand']}"
    if not found:
        return f"nobody in {roster.name} is this student"
    if len(found) > 1:
        several = "; ".join(map(told, found))
        return f"{roster.name} has {len(found)} whom this can be: {several}"
    return ""


def told(person: Person) -> str:
    return f"{person.name} ({person.number or ', '.join(sorted(person.ids)) or 'no id'})"


def left_row(mark: Mark, reason: str) -> dict[str, str]:
    return {column: mark.row.get(column, "") for column in COLUMNS} | {"reason": reason}


def absent(marks: list[Mark], titles: Iterable[str], roster: Roster) -> list[dict[str, str]]:
    """A row for everybody of whom no file has come, for each assignment."""
    seen = {
        (id(person), mark.submission.assignment)
        for mark in marks
        for person in roster.find(mark.submission.identity)
    }
    return [
        dict.fromkeys(COLUMNS, "")
        | {"student": person.name, "assignment": name, "reason": "nothing was handed in"}
        for person in roster.people
        for name in titles
        if (id(person), name) not in seen
    ]


def renamed(placed: Placed) -> list[str]:
    """Whom the LMS's number tells, and the list calls by another name."""
    return sorted(
        {
            f"{mark.submission.student} is {told(person)} in the list, by the same number"
            for person, mark in placed.values()
            if not keys(mark.submission.identity.known_as) & person.keys
            and plain(mark.submission.identity.known_as) != plain(person.name)
            and mark.submission.identity.number == person.number
        }
    )


def plain(name: str) -> str:
    """A name as a download may have it, without the letters that are not on every keyboard."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
