"""The book's JavaScript: `deno fmt` formats it, but for long texts and comments."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = json.loads((ROOT / "deno.json").read_text("utf-8"))
FILES = sorted({path for glob in CONFIG["fmt"]["include"] for path in ROOT.glob(glob)})


def test_the_same_files_are_linted_and_formatted():
    assert CONFIG["fmt"]["include"] == CONFIG["lint"]["include"]
    tracked = [*(ROOT / "src").rglob("*.js"), *(ROOT / "book" / "_ext").rglob("*.js")]
    assert set(tracked) | set((ROOT / "tools").rglob("*.js")) == set(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_lines_are_as_short_as_python_s(path):
    lines = path.read_text("utf-8").splitlines()
    longest = CONFIG["fmt"]["lineWidth"]
    assert [f"{n}: {line}" for n, line in enumerate(lines, 1) if len(line) > longest] == []
