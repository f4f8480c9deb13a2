"""Zips that have the same bytes every time: no file in them carries a time of its own."""

import zipfile
from collections.abc import Container, Mapping
from pathlib import Path
from typing import BinaryIO


def write_zip(
    target: Path | BinaryIO, files: Mapping[str, bytes], *, stored: Container[str] = ()
) -> None:
    """Write files into a zip, in the order that they come in. Scripts can be run, once unpacked.

    Args:
        target: the zip.
        files: contents by name.
        stored: names of files that are not compressed.
    """
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # of 1 January 1980
            # who may read or run it, on a system that asks
            entry.external_attr = (0o755 if content.startswith(b"#!") else 0o644) << 16
            method = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, method)
