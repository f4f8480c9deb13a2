"""Find what was handed in: files, folders and zips, as they are kept or as an LMS packs them."""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import mktime
from typing import NamedTuple

LARGEST = 50 * 2**20  # bytes of one file; a zip of a class may be larger
DEPTH = 4  # zips within zips
NOT_HANDED_IN = re.compile(r"^(\..*|__MACOSX|Thumbs\.db|desktop\.ini|timestamp\.txt)$")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)(?:_.*)?")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_.+")
LMS = {"moodle": MOODLE, "canvas": CANVAS}
ENDING = re.compile(r"(\.ipynb)?(\.\w{1,5})?$")  # a browser may save x.ipynb.txt


@dataclass(frozen=True)
class File:
    """A file that was handed in.

    parts: where it lay, from the folder of submissions on; a zip is a folder.
    changed: when, in seconds, to tell the newer of two; of a zip's member the zip knows.
    data: what is in it.
    unread: why that is not known, in words; empty where it is.
    """

    parts: tuple[str, ...]
    changed: float
    data: bytes = b""
    unread: str = ""

    @property
    def name(self) -> str:
        return "/".join(self.parts)


def files_in(folder: Path) -> Iterator[File]:
    """Every file in a folder or a zip, those in zips within too, in the order of their names."""
    if folder.is_file() and zipfile.is_zipfile(folder):
        yield from files_in_zip(folder, (), DEPTH)
        return
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if not path.is_file() or any(map(NOT_HANDED_IN.match, parts)):
            continue
        changed = path.stat().st_mtime
        try:
            if path.suffix.lower() == ".zip":  # a text document is a zip, too
                yield from files_in_zip(path, parts, DEPTH)
            elif path.stat().st_size > LARGEST:
                yield File(parts, changed, unread=too_large(path.stat().st_size))
            else:
                yield File(parts, changed, path.read_bytes())
        except OSError as error:
            yield File(parts, changed, unread=f"the file cannot be read: {error.strerror}")


def files_in_zip(zipped: Path | io.BytesIO, parts: tuple[str, ...], depth: int) -> Iterator[File]:
    try:
        with zipfile.ZipFile(zipped) as archive:
            for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
                inside = tuple(part for part in entry.filename.split("/") if part not in ("", ".."))
                if not entry.is_dir() and not any(map(NOT_HANDED_IN.match, inside)):
                    yield from unzipped(archive, entry, parts + inside, depth)
    except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
        yield File(parts, 0, unread=f"the zip cannot be read: {error}")


def unzipped(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, parts: tuple[str, ...], depth: int
) -> Iterator[File]:
    changed = mktime((*entry.date_time, 0, 0, -1))  # the zip's clock shows local time
    if entry.file_size > LARGEST:
        yield File(parts, changed, unread=too_large(entry.file_size))
        return
    try:
        data = archive.read(entry)
    except Exception as error:  # a damaged entry, a password, a method that Python has not
        yield File(parts, changed, unread=f"it cannot be taken out of its zip: {error}")
        return
    if data.startswith(b"PK\3\4") and parts[-1].lower().endswith(".zip"):
        if depth:
            yield from files_in_zip(io.BytesIO(data), parts, depth - 1)
        else:
            yield File(parts, changed, unread="too many zips within zips")
    else:
        yield File(parts, changed, data)


def too_large(size: int) -> str:
    return f"the file has {size / 2**20:.0f} MB, and {LARGEST / 2**20:.0f} MB are read"


class Student(NamedTuple):
    """Who handed in a file.

    name: the one that is written: two people of one name, whom the LMS tells apart, get its number
        behind the name.
    known_as: the name alone, as Moodle or Canvas wrote it, else the folder's, else the file's.
    number: the LMS's, empty where none was written.
    lms: "canvas", "moodle", or empty.
    """

    name: str
    known_as: str
    number: str = ""
    lms: str = ""


NOBODY = Student("", "")


def students(files: list[File], assignment_of: dict[File, str]) -> dict[File, Student]:
    """Who handed in each file.

    assignment_of: the assignment of those files that are one.
    """
    drop = common_folder(files, assignment_of)
    named = {file: student(file.parts[drop:]) for file in files}
    numbers = {}
    for each in named.values():
        numbers.setdefault(each.known_as, set()).add(each.number)
    return {
        file: each._replace(name=f"{each.known_as}_{each.number}")
        if len(numbers[each.known_as]) > 1 and each.number
        else each
        for file, each in named.items()
    }


def common_folder(files: Iterable[File], assignment_of: dict[File, str]) -> int:
    """How many folders stand around the whole class, such as that of a downloaded zip."""
    drop = 0
    twice = max(Counter(assignment_of.values()).values(), default=0) > 1
    while (
        len({file.parts[drop : drop + 1] for file in files}) == 1
        and all(len(file.parts) > drop + 1 for file in files)
        and (next(iter(files)).parts[drop] == "submitted" or twice)
        and not any(MOODLE.fullmatch(file.parts[drop]) for file in files)
    ):
        drop += 1
    return drop


def student(parts: tuple[str, ...]) -> Student:
    for lms, pattern in LMS.items():
        for part in parts:
            if match := pattern.fullmatch(part):
                name = safe(match["name"])
                return Student(name, name, match["id"], lms)
    first = parts[0]
    name = safe(ENDING.sub("", first) if len(parts) == 1 else first.removesuffix(".zip"))
    return Student(name, name)


def safe(name: str) -> str:
    """A name that is also the name of a folder."""
    name = re.sub(r"[\x00-\x1f/\\]", "_", name.strip())[:100]
    return name if name.strip(".") else "_"
