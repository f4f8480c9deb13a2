"""A bundle, unpacked where nothing of the repository is beside it."""

import sys
import zipfile
from pathlib import Path

import pytest

from assignments.autograders.bundle import write_bundle


@pytest.fixture
def unpacked(course, tmp_path):
    """Unpacks an assignment's bundle into a folder of `tmp_path`, and returns that."""

    def unpack(platform: str, name: str, to: str) -> Path:
        folder = tmp_path / to
        with zipfile.ZipFile(write_bundle(platform, name, course, tmp_path)) as archive:
            for entry in archive.infolist():
                path = Path(archive.extract(entry, folder))
                path.chmod(entry.external_attr >> 16)  # as unzip does, and zipfile does not
        return folder

    return unpack


def give_packages(folder: Path) -> None:
    """Put these tests' packages where install.sh, which needs a network, puts its own."""
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
