"""Pack the built pages into one zip that is read from a folder, without a server or a network.

The same pages make the same bytes: the files are sorted and carry no time of their own.
"""

import sys
from pathlib import Path

from tools.zips import write_zip

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "_build" / "html"
NAME = "attention-head-by-head"
LICENCES = ("LICENSE", "LICENSE-TEXT")
LEFT_OUT = (
    *("404.html", "robots.txt", "sitemap.xml", "cards/"),  # for servers and crawlers
    *(".buildinfo", "objects.inv"),  # for Sphinx
    # What the theme brings and no page loads.
    *("_static/vendor/", "_static/scripts/bootstrap.js", "_static/scripts/fontawesome.js"),
)
README = """\
Attention, Head by Head

Open index.html in a browser. Everything works without a network: the sliders, the search, the
equations and the dark theme. The folder notebooks holds the chapters as Jupyter notebooks. Beside
each page stands its text as Markdown.

The text and the pictures are under CC BY 4.0 (LICENSE-TEXT), the code is under the MIT licence
(LICENSE).
"""


def write_offline(pages: Path, target: Path) -> None:
    """Write the zip: one folder, with `index.html` and a `READ ME.txt` that says to open it."""
    if not (pages / "index.html").is_file():
        raise FileNotFoundError(f"there are no built pages in {pages}: run `make book` first")
    files = {name: (ROOT / name).read_bytes() for name in LICENCES}
    files["READ ME.txt"] = README.encode()
    for path in pages.rglob("*"):
        name = path.relative_to(pages).as_posix()
        if path.is_file() and not name.startswith(LEFT_OUT):
            files[name] = path.read_bytes()
    write_zip(target, {f"{NAME}/{name}": files[name] for name in sorted(files)})


def main() -> int:
    target = PAGES.parent / f"{NAME}.zip"
    write_offline(PAGES, target)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
