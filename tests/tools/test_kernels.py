"""What everybody types, `pytest --nbval book`, runs the chapters as the checks do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.check import ROOT

# A shell that nobody prepared: no variable of the checks, of pytest or of tqdm.
PLAIN = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}


def pytest_nbval(*arguments):
    command = [Path(sys.executable).with_name("pytest"), "--nbval", *arguments]
    return subprocess.run(command, cwd=ROOT, env=PLAIN, capture_output=True, text=True)


@pytest.mark.everything
@pytest.mark.slow
def test_a_progress_bar_is_no_output():
    chapter = ROOT / "book" / "10-where-order-comes-from.ipynb"
    assert "tqdm" in chapter.read_text("utf-8")
    done = pytest_nbval(chapter)
    assert done.returncode == 0, done.stdout


def test_of_the_book_it_takes_the_chapters_alone():
    done = pytest_nbval("book", "--collect-only", "-q")
    taken = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert taken == {f"book/{path.name}" for path in (ROOT / "book").glob("*.ipynb")}
