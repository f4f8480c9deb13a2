"""The book in every form to take along, and the pages with these beside them: `make formats`.

This table is the one list of the forms: the menu of a published page offers what stands in it, and
the workflows publish and release what this module puts together.
"""

import importlib
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from tools.offline import NAME, PAGES, ROOT

PUBLISHED = PAGES.parent / "published"


class Format(NamedTuple):
    """One form of the whole book.

    Attributes:
        module: writes it, by its `main`; the target of make has the same name.
        words: what the menu of a published page says.
        address: where the menu leads, beside the pages.
    """

    module: str
    words: str
    address: str


FORMATS = (
    Format("pdf", "Download the book as a PDF", f"{NAME}.pdf"),
    Format("epub", "Download the book as an EPUB", f"{NAME}.epub"),
    Format("offline", "Download the book to read offline", f"{NAME}.zip"),
    Format("slides", "Show the slides of a chapter", "slides/index.html"),
)


def put_together(pages: Path, target: Path) -> None:
    """Copy the pages, and from the folder around them every form to where the menu leads."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(pages, target)
    for each in FORMATS:
        top = Path(each.address).parts[0]
        source = pages.parent / top
        if source.is_dir():
            shutil.copytree(source, target / top)
        else:
            shutil.copy(source, target / top)


def main() -> int:
    for each in FORMATS:
        module = f"tools.{each.module}"
        is_folder = (ROOT / "tools" / each.module).is_dir()
        importlib.import_module(f"{module}.__main__" if is_folder else module).main()
    put_together(PAGES, PUBLISHED)
    print(f"{PUBLISHED.relative_to(ROOT)}: the pages, and all of these beside them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
