"""Who handed in what is read from folders, from files and from what an LMS packs."""

import io
import os
import zipfile

import pytest

from assignments.intake.files import LARGEST, MEMBERS, NAME, TOTAL, files_in, students

NOTEBOOK = "1-projection.ipynb"


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


LAYOUTS = {
    "a file each": ({"ada.ipynb": b"{", "bob.b.ipynb": b"{"}, ["ada", "bob.b"]),
    "renamed by a browser": ({"ada.ipynb.txt": b"{", "bob.ipynb.json": b"{"}, ["ada", "bob"]),
    "a folder each": ({f"ada/{NOTEBOOK}": b"{", "bob/x.ipynb": b"{"}, ["ada", "bob"]),
    "nbgrader": (
        {
            f"submitted/ada/1-projection/{NOTEBOOK}": b"{",
            "submitted/ada/1-projection/timestamp.txt": b"2027",
            f"submitted/bob/1-projection/{NOTEBOOK}": b"{",
        },
        ["ada", "bob"],
    ),
    "nbgrader, one student": ({f"submitted/ada/1-projection/{NOTEBOOK}": b"{"}, ["ada"]),
    "Moodle, folders": (
        {
            f"Ada Lovelace_1234_assignsubmission_file_/{NOTEBOOK}": b"{",
            "Bob_1235_assignsubmission_file/my work/x.ipynb": b"{",
        },
        ["Ada Lovelace", "Bob"],
    ),
    "Moodle, files": (
        {f"Ada Lovelace_1234_assignsubmission_file_{NOTEBOOK}": b"{"},
        ["Ada Lovelace"],
    ),
    "Moodle, one name twice": (
        {
            "Ada_1_assignsubmission_file_/a.ipynb": b"{",
            "Ada_2_assignsubmission_file_/a.ipynb": b"{",
        },
        ["Ada_1", "Ada_2"],
    ),
    "Canvas": (
        {"lovelaceada_1234_5678_x-1.ipynb": b"{", "bob_LATE_12_34_1-projection.ipynb": b"{"},
        ["lovelaceada", "bob"],
    ),
    "a zip each": (
        {"ada.zip": zipped({NOTEBOOK: b"{"}), "bob.zip": zipped({"x.ipynb": b"{"})},
        ["ada", "bob"],
    ),
    "a class's zip": (
        {"download.zip": zipped({"ada.ipynb": b"{", "bob.ipynb": b"{"})},
        ["ada", "bob"],
    ),
    "zips within": (
        {
            "download.zip": zipped(
                {
                    "Ada_1_assignsubmission_file_/work.zip": zipped({f"deep/{NOTEBOOK}": b"{"}),
                    "Bob_2_assignsubmission_file_/x.ipynb": b"{",
                }
            )
        },
        ["Ada", "Bob"],
    ),
    "one folder around": ({"week 1/ada.ipynb": b"{", "week 1/bob.ipynb": b"{"}, ["ada", "bob"]),
}
BESIDE = {"__MACOSX/._x.ipynb": b"", ".DS_Store": b"", "ada/.ipynb_checkpoints/x.ipynb": b"{"}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("packed", [False, True])
def test_layouts(layout, packed, tmp_path):
    """The same as a folder and as a zip of it; what a system puts beside it is left out."""
    files, expected = LAYOUTS[layout]
    folder = tmp_path / "in"
    if packed:
        folder = tmp_path / "all.zip"
        folder.write_bytes(zipped(files | BESIDE))
    else:
        for name, data in (files | BESIDE).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    files_read = list(files_in(folder))
    assert not [file for file in files_read if file.unread]
    names = students(files_read, dict.fromkeys(files_read, "1-projection"))
    assert sorted(each.name for each in names.values()) == sorted(expected)


def test_what_cannot_be_read_is_said(tmp_path):
    good = zipped({"x.ipynb": b"{" * 100})
    (tmp_path / "ada.zip").write_bytes(good[:40] + b"\0" * 60 + good[100:])
    nested = zipped({"x.ipynb": b"{"})
    for _ in range(8):
        nested = zipped({"x.zip": nested})
    (tmp_path / "bob.zip").write_bytes(nested)
    with (tmp_path / "large.ipynb").open("wb") as file:
        file.truncate(LARGEST + 1)
    with zipfile.ZipFile(tmp_path / "carol.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.ipynb", bytes(LARGEST + 1))
    (tmp_path / "dave.zip").write_bytes(b"PK\3\4, and then something else")
    (tmp_path / "eve.docx").write_bytes(zipped({"word/document.xml": b"<w/>"}))
    unread = {file.parts[0]: file.unread for file in files_in(tmp_path)}
    print(unread)
    assert unread["ada.zip"].startswith("it cannot be taken out of its zip")
    assert unread["bob.zip"] == "too many zips within zips"
    assert unread["dave.zip"].startswith("the zip cannot be read")
    assert unread["eve.docx"] == ""  # one file, which is no notebook
    assert unread["large.ipynb"] == unread["carol.zip"] == "the file has 50 MB, and 50 MB are read"


def test_names_that_are_paths(tmp_path):
    (tmp_path / "all.zip").write_bytes(zipped({"../../evil.ipynb": b"{", "/etc/x.ipynb": b"{"}))
    files = list(files_in(tmp_path / "all.zip"))
    names = students(files, {})
    assert sorted(each.name for each in names.values()) == ["etc", "evil"]


def written(folder, files: dict[str, bytes]) -> list:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return list(files_in(folder))


@pytest.mark.parametrize(
    ("packed", "beside", "expected"),
    [
        ("evilann_99_678_hw.zip", "bobx_12_345_hw.ipynb", [("bobx", "12"), ("evilann", "99")]),
        ("ann.zip", "Bob X.ipynb", [("Bob X", ""), ("ann", "")]),
    ],
)
def test_a_name_within_a_zip_is_nobody_elses(packed, beside, expected, tmp_path):
    """Whoever packs a zip writes the names in it, and may write one that an LMS would write."""
    inside = zipped({"Bob X_12_assignsubmission_file_/hw.ipynb": b"{"})
    files = written(tmp_path, {packed: inside, beside: b"{"})
    names = students(files, dict.fromkeys(files, "1-projection")).values()
    assert sorted((each.known_as, each.number) for each in names) == expected


def test_two_downloads_beside_each_other(tmp_path):
    """The names in them are an LMS's, since every notebook has one."""
    member = "{}_assignsubmission_file_/x.ipynb"
    files = written(
        tmp_path,
        {
            "section 1.zip": zipped({member.format("Ada_1"): b"{", member.format("Bob_2"): b"{"}),
            "section 2.zip": zipped({member.format("Cleo_3"): b"{"}),
        },
    )
    names = students(files, dict.fromkeys(files, "1-projection")).values()
    assert sorted(each.name for each in names) == ["Ada", "Bob", "Cleo"]


def test_no_name_is_another_students(tmp_path):
    """A number at its end may be the LMS's for another one; long names differ at their ends."""
    long = "x" * 200
    members = ["Ada_1_2_assignsubmission_file_/x.ipynb", "Ada_1_assignsubmission_file_/x.ipynb"]
    members += [f"Ada_{n}_assignsubmission_file_/y.ipynb" for n in (3,)]
    files = written(tmp_path, dict.fromkeys([*members, f"{long}a.ipynb", f"{long}b.ipynb"], b"{"))
    names = [each.name for each in students(files, {}).values()]
    assert len(set(names)) == len(names) and max(len(n.encode()) for n in names) < 200


def test_when_a_file_came_counts_before_what_a_zip_says(tmp_path):
    with zipfile.ZipFile(tmp_path / "ada.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("old.ipynb", (2099, 1, 1, 0, 0, 0)), b"{")
        archive.writestr(zipfile.ZipInfo("older.ipynb", (2098, 1, 1, 0, 0, 0)), b"{")
    (tmp_path / "new.ipynb").write_bytes(b"{")
    for second, name in enumerate(["ada.zip", "new.ipynb"], start=1):
        os.utime(tmp_path / name, (second, second))
    newest = sorted(files_in(tmp_path), key=lambda file: file.changed)
    assert [file.parts[-1] for file in newest] == ["older.ipynb", "old.ipynb", "new.ipynb"]


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_what_unpacks_all_at_once_is_left(method, tmp_path):
    with zipfile.ZipFile(tmp_path / "eve.zip", "w", method) as archive:
        archive.writestr("x.ipynb", bytes(1000))
    (file,) = files_in(tmp_path)
    assert "in a way that is not read" in file.unread and not file.data


def test_a_member_is_no_larger_than_it_says(tmp_path):
    """A megabyte that says to be ten bytes: no more is unpacked, and it is damaged."""
    with zipfile.ZipFile(tmp_path / "eve.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.ipynb", bytes(2**20))
    data = (tmp_path / "eve.zip").read_bytes()
    size = (2**20).to_bytes(4, "little")
    assert data.count(size) == 2
    (tmp_path / "eve.zip").write_bytes(data.replace(size, (10).to_bytes(4, "little")))
    (file,) = files_in(tmp_path)
    assert file.unread.startswith("it cannot be taken out of its zip: Bad CRC")


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "key.ipynb").write_bytes(b"{}")
    (tmp_path / "class" / "ada.ipynb").symlink_to(tmp_path / "key.ipynb")
    (tmp_path / "class" / "bob").symlink_to(tmp_path)
    read = {file.name: (file.data, file.unread) for file in files_in(tmp_path / "class")}
    assert read == dict.fromkeys(
        ["ada.ipynb", "bob"], (b"", "it is a link, and links are not followed")
    )


def test_a_name_that_is_no_text_can_be_written(tmp_path):
    try:
        (tmp_path / os.fsdecode(b"ad\xff.ipynb")).write_bytes(b"{")
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    [file] = files_in(tmp_path)
    assert file.name.encode("utf-8").decode() == "ad\N{REPLACEMENT CHARACTER}.ipynb"


def test_a_zip_whose_names_are_not_what_they_are_said_to_be(tmp_path):
    data = bytearray(zipped({"aaaa.ipynb": b"{"}).replace(b"aaaa", b"\xff\xff\xff\xff"))
    for header, flags in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        data[data.index(header) + flags + 1] |= 0x08  # "the name is UTF-8"
    files = {file.name: file.unread for file in written(tmp_path, {"a.zip": bytes(data), "b": b""})}
    assert files["a.zip"].startswith("the zip cannot be read") and not files["b"]


def test_a_long_name_of_a_member_is_shortened(tmp_path):
    [file] = written(tmp_path, {"a.zip": zipped({f"{'x' * 60_000}/y.ipynb": b"{}"})})
    assert len(file.name) <= NAME + 1 and file.name.endswith("/y.ipynb")


def test_a_small_zip_does_not_become_large(tmp_path):
    """2 MB of zip can hold 2 GB of zeros, or as many files as one likes."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in "abcd":
            archive.writestr(f"{name}.ipynb", bytes(TOTAL * 2 // 5))
    zeros = {file.parts[-1]: (len(file.data), file.unread) for file in files_in(tmp_path)}
    assert [size > 0 for size, _ in zeros.values()] == [True, True, False, False]
    assert zeros["d.ipynb"][1] == "its zip holds more than the 100 MB that are read"
    (tmp_path / "bomb.zip").write_bytes(zipped({f"{i}.txt": b"" for i in range(MEMBERS + 99)}))
    files = list(files_in(tmp_path))
    assert len(files) == MEMBERS + 1
    assert files[-1].unread == "its zip holds more files than the 2000 that are read"
