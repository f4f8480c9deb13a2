"""List the pages that differ from another commit's: `python -m tools.changed_pages COMMIT`.

A page differs where its own text does. What every page is made with, such as a stylesheet, can
change them all: then the list says so and names the files.
"""

import subprocess
import sys
from pathlib import PurePath

PAGE_ENDINGS = (".ipynb", ".md")
EVERY_PAGE = (
    *("_config.yml", "_toc.yml", "requirements.txt", "book/"),
    *("tools/published_notebook.py", "tools/repository.py", "tools/widget_state.py"),
)


def changed_files(base: str) -> list[str]:
    """Paths that changed since the commit where this branch left `base`, deleted ones left out."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", f"{base}...HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")


def listed(paths: list[str]) -> str:
    """The Markdown list for these changed paths."""
    pages, shared = [], []
    for path in map(PurePath, paths):
        if str(path.parent) == "book" and path.suffix in PAGE_ENDINGS:
            pages.append(path.with_suffix(".html").name)
        elif str(path).startswith(EVERY_PAGE):
            shared.append(str(path))
    lines = [f"- `{page}`" for page in sorted(pages)] or ["- no page's own text changed"]
    if shared:
        files = ", ".join(f"`{path}`" for path in sorted(shared))
        lines.append(f"- every page may look different: {files} changed")
    return "\n".join(lines)


if __name__ == "__main__":
    print(listed(changed_files(sys.argv[1])))
