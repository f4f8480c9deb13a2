"""What the tests in real clients share: a Jupyter server of our own, and a browser to open it with.

Nothing of the user's matters and nothing of it is touched: the server reads a copy of the book, and
its settings, its runtime files and its trust in notebooks lie in a temporary folder. The browser
resolves no name but the loopback address.
"""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import nbformat
import pytest
from nbformat import NotebookNode
from playwright.sync_api import Browser, sync_playwright

from tools.chromium import CHROMIUM_ARGUMENTS, find_chromium
from tools.widget_state import WIDGET_VIEW

BOOK = Path(__file__).resolve().parents[2] / "book"
PATIENCE = 60  # seconds that anything may take on a busy machine

# Both clients ask over a corner of the page whether they may fetch news.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}
# Where a client shows a notebook.
PLACES = {"jupyterlab": "lab/tree/{}?reset&token={}", "notebook": "notebooks/{}?token={}"}

WHOLE = "06-weighted-sums-and-merging"  # an explorer of it shows what other cells have made


def explores(cell: NotebookNode) -> bool:
    """Whether a cell is text, the setup, or shows an explorer: `test_colab.py` runs the others."""
    shown = [output.get("data", {}) for output in cell.get("outputs", [])]
    return cell.cell_type != "code" or cell.id == "setup" or any(WIDGET_VIEW in x for x in shown)


@dataclass(frozen=True)
class Jupyter:
    """A server that runs: `program` is "jupyterlab" or "notebook", `folder` all that it knows."""

    program: str
    url: str
    token: str
    folder: Path

    @property
    def book(self) -> Path:
        return self.folder / "book"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def address(self, notebook: str) -> str:
        return self.url + PLACES[self.program].format(notebook, self.token)

    def kernels(self) -> list[dict]:
        """The kernels that run now. AssertionError while the server cannot tell."""
        try:
            return _ask(self.url + "api/kernels", self.token)
        except HTTPError as error:  # 500 where a kernel has begun to start, but not been heard of
            raise AssertionError(f"the server does not tell its kernels: {error}") from error

    def stop_kernel(self, kernel: str) -> None:
        _ask(f"{self.url}api/kernels/{kernel}", self.token, "DELETE")


@contextmanager
def serve(program: str) -> Iterator[Jupyter]:
    """Run `python -m jupyterlab` or `python -m notebook` over a copy of the book, until the end.

    Of all chapters but WHOLE the copy has the explorers and the text alone.
    """
    # In /tmp: the path of a socket holds a hundred characters, and other such folders lie deep.
    folder = Path(tempfile.mkdtemp(prefix="jupyter-", dir="/tmp"))
    token = secrets.token_hex()
    for name in ("book", "config/labconfig"):
        (folder / name).mkdir(parents=True)
    for path in BOOK.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        if path.stem != WHOLE:
            notebook.cells = [cell for cell in notebook.cells if explores(cell)]
        nbformat.write(notebook, folder / "book" / path.name)
    overrides = folder / "config" / "labconfig" / "default_setting_overrides.json"
    overrides.write_text(json.dumps(SETTINGS), "utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")} | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder),
        "JUPYTER_TOKEN": token,
        "IPYTHONDIR": str(folder / "ipython"),
        "OMP_NUM_THREADS": "1",
    }
    command = [
        *(sys.executable, "-m", program, "--no-browser", "--allow-root", "--LabApp.news_url=None"),
        f"--ServerApp.root_dir={folder / 'book'}",
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={_free_port()}"),
        "--KernelManager.transport=ipc",  # tools/kernels.py says why
    ]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield Jupyter(program, _wait_for(process, folder, token), token, folder)
    finally:
        process.terminate()  # the server stops its kernels first
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    # Taken in the meantime it does no harm: the server goes on to another and says which.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_for(process: subprocess.Popen, folder: Path, token: str) -> str:
    """The address of the server, once it answers."""
    connection = folder / f"jpserver-{process.pid}.json"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            url = json.loads(connection.read_text("utf-8"))["url"]
            _ask(url + "api/status", token)
            return url
        except (OSError, ValueError):  # no file yet, half a file, no answer
            time.sleep(0.1)
    pytest.fail(f"{' '.join(process.args)} does not answer:\n{(folder / 'log').read_text('utf-8')}")


def _ask(url: str, token: str, method: str = "GET"):
    request = Request(url, headers={"Authorization": f"token {token}"}, method=method)
    with urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read() or "null")


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], Jupyter]]:
    """The server that runs a program; each is started once, when it is first asked for."""
    with ExitStack() as stack:
        yield cache(lambda program: stack.enter_context(serve(program)))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
        )
        yield browser
        browser.close()


def pytest_terminal_summary(terminalreporter):
    """Print what the chapters took, wherever they ran."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]
    taken = [text for r in reports for name, text in r.user_properties if name == "taken"]
    if taken:
        terminalreporter.section("every chapter, run whole: peak memory and processor time")
        for line in sorted(taken, key=lambda line: line.rsplit(maxsplit=1)[-1]):
            terminalreporter.write_line(line)
