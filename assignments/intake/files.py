"""Find what was handed in: files, folders and zips, as they are kept or as an LMS packs them."""

import hashlib
import io
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import mktime
from typing import NamedTuple

LARGEST = 50 * 2**20  # bytes of one file; a zip of a class may be larger
TOTAL = 100 * 2**20  # bytes of all files in one zip that was handed in,
MEMBERS = 2000  # and how many these are
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # others unpack all at once, however much
DEPTH = 4  # zips within zips
NOT_HANDED_IN = re.compile(r"^(\..*|__MACOSX|Thumbs\.db|desktop\.ini|timestamp\.txt)$")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)(?:_.*)?")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_.+")
LMS = {"moodle": MOODLE, "canvas": CANVAS}
NUMBERED = re.compile(r"_\d+$")
LONGEST = 150  # bytes of a student's name, which a folder gets
NAME = 300  # characters that are shown of a file's name: that of a zip's member has up to 65,000
ENDING = re.compile(r"(\.ipynb)?(\.\w{1,5})?$")  # a browser may save x.ipynb.txt


@dataclass(frozen=True)
class File:
    """A file that was handed in.

    parts: where it lay, from the folder of submissions on; a zip is a folder.
    changed: when, in seconds, to tell the newer of two: when the file came, then, of a zip's
        member, what the zip says, which students write.
    data: what is in it.
    unread: why that is not known, in words; empty where it is.
    """

    parts: tuple[str, ...]
    changed: tuple[float, ...]
    data: bytes = b""
    unread: str = ""

    @property
    def name(self) -> str:
        name = "/".join(self.parts)
        return name if len(name) <= NAME else f"{name[: NAME // 2]}…{name[-NAME // 2 :]}"


def files_in(folder: Path) -> Iterator[File]:
    """Every file in a folder or a zip, those in zips within too, in the order of their names."""
    if folder.is_file() and zipfile.is_zipfile(folder):
        yield from files_in_zip(folder, (), (), DEPTH)
        return
    for path in sorted(folder.rglob("*")):
        # a name need not be UTF-8; what is left of it can be printed and written
        parts = tuple(
            os.fsencode(p).decode("utf-8", "replace") for p in path.relative_to(folder).parts
        )
        if any(map(NOT_HANDED_IN.match, parts)):
            continue
        if path.is_symlink():
            yield File(parts, (0.0,), unread="it is a link, and links are not followed")
            continue
        if not path.is_file():
            continue
        changed = (path.stat().st_mtime,)
        try:
            if path.suffix.lower() == ".zip":  # a text document is a zip, too
                yield from files_in_zip(path, parts, changed, DEPTH, Left())
            elif path.stat().st_size > LARGEST:
                yield File(parts, changed, unread=too_large(path.stat().st_size))
            else:
                yield File(parts, changed, path.read_bytes())
        except OSError as error:
            yield File(parts, changed, unread=f"the file cannot be read: {error.strerror}")


@dataclass
class Left:
    """What may still be taken out of a zip that was handed in, and of the zips within."""

    size: int = TOTAL
    members: int = MEMBERS

    def lacks(self, size: int) -> str:
        """Why a file of this size may not be, in words; "" where it may, and is counted."""
        if size > LARGEST:
            return too_large(size)
        self.size, self.members = self.size - size, self.members - 1
        if self.members < 0:
            return f"its zip holds more files than the {MEMBERS} that are read"
        return f"its zip holds more than the {TOTAL // 2**20} MB that are read" * (self.size < 0)


def files_in_zip(
    zipped: Path | io.BytesIO,
    parts: tuple[str, ...],
    changed: tuple[float, ...],
    depth: int,
    left: Left | None = None,
) -> Iterator[File]:
    """changed: when the zip came; left: what may be taken out of it, None where it is a class's."""
    try:
        with zipfile.ZipFile(zipped) as archive:
            for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
                inside = tuple(part for part in entry.filename.split("/") if part not in ("", ".."))
                if not entry.is_dir() and not any(map(NOT_HANDED_IN.match, inside)):
                    dated = (*changed, mktime((*entry.date_time, 0, 0, -1)))  # in local time
                    own = Left() if left is None else left
                    if why := own.lacks(entry.file_size):
                        yield File(parts + inside, dated, unread=why)
                        if own.members < 0:
                            return
                        continue
                    yield from unzipped(archive, entry, parts + inside, dated, depth, own)
    # a ValueError: its names are said to be UTF-8 and are not, or its dates are none
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, OverflowError) as error:
        yield File(parts, changed or (0.0,), unread=f"the zip cannot be read: {error}")


def unzipped(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    parts: tuple[str, ...],
    changed: tuple[float, ...],
    depth: int,
    left: Left,
) -> Iterator[File]:
    if entry.compress_type not in METHODS:
        why = "it is packed in a way that is not read, so zip it as usual"
        yield File(parts, changed, unread=why)
        return
    try:
        with archive.open(entry) as member:  # no more than it says to be
            data = member.read(entry.file_size)
    except Exception as error:  # a damaged entry, a password, a method that Python has not
        yield File(parts, changed, unread=f"it cannot be taken out of its zip: {error}")
        return
    if data.startswith(b"PK\3\4") and parts[-1].lower().endswith(".zip"):
        if depth:
            yield from files_in_zip(io.BytesIO(data), parts, changed, depth - 1, left)
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
    """Who handed in each file, by the outermost name: what is further inside a student has written.

    In folders and zips that no LMS has named, an LMS's name counts only where every notebook has
    one, as in two downloads beside each other: then the outermost of them is the LMS's.

    assignment_of: the assignment of those files that are one.
    """
    drop = common_folder(files, assignment_of)
    downloads = all(any(map(by_lms, file.parts[drop:])) for file in assignment_of)
    named = {file: student(file.parts[drop:], downloads) for file in files}
    numbers = {}
    for each in named.values():
        numbers.setdefault(each.known_as, set()).add(each.number)
    return {
        file: each._replace(name=f"{each.known_as}_{each.number}")
        # a name that ends in a number could be that of another, with the LMS's number behind it
        if each.number and (len(numbers[each.known_as]) > 1 or NUMBERED.search(each.known_as))
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
        and not any(by_lms(file.parts[drop]) for file in files)
    ):
        drop += 1
    return drop


def by_lms(part: str) -> Student | None:
    """Who handed in what an LMS gave this name."""
    for lms, pattern in LMS.items():
        if match := pattern.fullmatch(part):
            name = safe(match["name"])
            return Student(name, name, match["id"], lms)
    return None


def student(parts: tuple[str, ...], downloads: bool) -> Student:
    """downloads: whether names of an LMS count further inside, too."""
    for part in parts if downloads else parts[:1]:
        if found := by_lms(part):
            return found
    first = parts[0]
    name = safe(ENDING.sub("", first) if len(parts) == 1 else first.removesuffix(".zip"))
    return Student(name, name)


def safe(name: str) -> str:
    """A name that is also the name of a folder."""
    name = re.sub(r"[\x00-\x1f/\\]", "_", name.strip())
    if len(name.encode()) > LONGEST:  # cut, and kept apart from others that begin so
        mark = hashlib.sha256(name.encode()).hexdigest()[:8]
        name = f"{name.encode()[:LONGEST].decode(errors='ignore')} {mark}"
    return name if name.strip(".") else "_"
