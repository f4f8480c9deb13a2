"""Kernels that talk over Unix sockets. As a pytest plugin, which conftest.py names: nbval's too.

Over TCP a kernel is given ports that another process can take before it binds them. When that
hits the port of its output or of its heartbeat, ipykernel hangs instead of ending, and the run
fails a minute later with "Kernel didn't respond in 60 seconds".
"""

import itertools
import os
import tempfile
from pathlib import Path

from jupyter_client import KernelManager

SOCKETS = tempfile.TemporaryDirectory(prefix="kernels-")  # removed when the process ends
numbers = itertools.count()

# A kernel started from here shows no progress of a training: its bars are no output to compare.
os.environ["TQDM_DISABLE"] = "1"


def unix_sockets() -> dict[str, str]:
    """Settings of a kernel manager: sockets of its own for every kernel."""
    connection_file = Path(SOCKETS.name) / f"{next(numbers)}.json"
    return {"transport": "ipc", "connection_file": str(connection_file)}


def pytest_configure(config) -> None:
    if not config.getoption("nbval"):
        return
    import nbval.kernel

    nbval.kernel.KernelManager = lambda **settings: KernelManager(**settings, **unix_sockets())
