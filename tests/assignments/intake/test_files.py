"""Who handed in what is read from folders, from files and from what an LMS packs."""

import io
import zipfile

import pytest

from assignments.intake.files import LARGEST, files_in, students

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
