"""One run of every chapter, which its tests share, and what it took."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from nbformat import NotebookNode

from tools.refresh import chapters, fresh_copy


@dataclass
class Run:
    """A chapter, run from its first cell to its last in a kernel of its own."""

    path: Path
    notebook: NotebookNode
    seconds: float  # from the kernel's start to its end
    peak_memory: int | None  # the kernel's, in bytes; None on a system that does not tell


@pytest.fixture(
    scope="session",
    params=[
        # Under xdist each chapter is a group of its own, so that two of them run at a time.
        pytest.param(path, id=path.stem, marks=pytest.mark.xdist_group(path.stem))
        for path in chapters()
    ],
)
def run(request):
    peak_memory = None

    def look(client):
        nonlocal peak_memory  # the last look sees the most
        peak_memory = most_memory_so_far(client.km.provisioner.pid)

    start = time.monotonic()
    notebook = fresh_copy(request.param, after_cell=look)
    return Run(request.param, notebook, time.monotonic() - start, peak_memory)


def most_memory_so_far(pid: int) -> int | None:
    """Most memory that a process has held so far, which Linux tells as its high-water mark."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    return 1024 * int(re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)[1])


def pytest_terminal_summary(terminalreporter):
    """Print what the chapters took, wherever they ran."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    taken = [text for r in reports for name, text in r.user_properties if name == "taken"]
    if taken:
        terminalreporter.section("every chapter, run whole: its kernel's peak memory and its time")
        for line in sorted(taken, key=lambda line: line.rsplit(maxsplit=1)[-1]):
            terminalreporter.write_line(line)
