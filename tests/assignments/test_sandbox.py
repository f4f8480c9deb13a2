"""A student's code is denied what is not its own, and a notebook that misbehaves is still run."""

import asyncio
import os
import re
import socket
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from assignments import landlock, run, seccomp
from assignments.course import ROOT, SOURCE

pytestmark = pytest.mark.skipif(
    not (landlock.version() and seccomp.available()), reason="this system has no Landlock"
)


def outputs(sources: list[str], mode: str = "full") -> tuple[list[str], list[str]]:
    """What is said about a run of these cells, and each one's error or text."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    remarks = asyncio.run(run.run(notebook, mode))
    return remarks, [shown(cell) for cell in notebook.cells]


def shown(cell) -> str:
    text = ""
    for output in cell.outputs:
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"
        text += output.get("text", "") or output.get("data", {}).get("text/plain", "")
    return text


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Files that are not the student's, a server on this machine, and a socket of a program."""
    folder = tmp_path_factory.mktemp("outside")
    for name in ("gradebook.db", "secret"):
        (folder / name).write_text("marks")
        (folder / name).chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        # Beside the folder: the path of a socket has 107 characters at most.
        name = f"\0a-program-{os.getpid()}"
        unix.bind(name)
        unix.listen()
        yield {
            "folder": str(folder),
            "source": str(next(SOURCE.glob("*/*.ipynb"))),
            "answers": str(ROOT / "tests" / "assignments"),
            "grades": str(ROOT / "_build"),
            "home": str(Path.home()),
            "port": tcp.getsockname()[1],
            "unix": name,
            "grader": os.getpid(),
        }


DENIED = {
    "reads the solutions": "open(source).read()",
    "lists the solutions": "os.listdir(os.path.dirname(source))",
    "reads the answers of the tests": "os.listdir(answers)",
    "lists what is built": "os.listdir(grades)",
    "reads the gradebook": "open(folder + '/gradebook.db').read()",
    "reads by a link": "os.symlink(folder, 'link'); open('link/secret').read()",
    "lists the home folder": "os.listdir(home)",
    "reads the users": "open('/etc/passwd').read()",
    "reads the grader's memory": "open(f'/proc/{grader}/mem', 'rb')",
    "reads the grader's environment": "open(f'/proc/{grader}/environ').read()",
    "writes the gradebook": "open(folder + '/gradebook.db', 'a')",
    "writes a new file": "open(folder + '/new', 'w')",
    "writes beside the course": "open(grades + '/new', 'w')",
    "deletes": "os.remove(folder + '/secret')",
    "renames": "os.rename(folder + '/secret', 'mine')",
    "makes a folder": "os.mkdir(folder + '/new')",
    "changes the packages": "open(torch.__file__, 'a')",
    "connects": "socket.create_connection(('127.0.0.1', port))",
    "sends a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "opens a port": "socket.create_server(('127.0.0.1', 0))",
    "asks a program": "socket.socket(socket.AF_UNIX).connect(unix)",
    "fetches a page": "import urllib.request as u; u.urlopen('http://127.0.0.1')",
    "forks": "os.fork()",  # denied once is denied without end, and harmless where it is not
    "starts a program": "subprocess.run(['true'])",
    "becomes a program": "os.execv('/bin/sh', ['sh', '-c', 'true'])",
    "starts a process": "import multiprocessing as m; m.Process(target=print).start()",
    "signals the grader": "os.kill(grader, 0)",
    "signals everybody": "os.kill(-1, 0)",
    "limits the grader": "resource.prlimit(grader, resource.RLIMIT_CPU, (1, 1))",
    "slows the grader": "os.setpriority(os.PRIO_PROCESS, grader, 19)",
    "new namespaces": "denied(libc.unshare(0x10000000))",
    "keys of the user": "denied(libc.syscall(KEYCTL, 0, -3, 0))",
    "fork, past Python": "denied(libc.fork())",
    "io_uring": "denied(libc.syscall(425, 8, ctypes.create_string_buffer(120)))",
    "ptrace": "denied(libc.ptrace(16, grader, 0, 0))",
}
SET_UP = """
import ctypes, os, platform, resource, socket, subprocess, torch
KEYCTL = {'x86_64': 250, 'aarch64': 219}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
def denied(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""


def test_what_is_not_the_students_is_denied(places):
    names = "\n".join(f"{name} = {value!r}" for name, value in places.items())
    remarks, (first, *rest) = outputs([names + SET_UP, *DENIED.values()])
    assert remarks == [] and first == ""
    for attempt, said in zip(DENIED, rest, strict=True):
        print(f"{attempt}: {said[:90]}")
    for attempt, said in zip(DENIED, rest, strict=True):
        assert "Operation not permitted" in said or "Permission denied" in said, attempt
    assert sorted(path.name for path in Path(places["folder"]).iterdir()) == [
        "gradebook.db",
        "secret",
    ]


def test_without_the_sandbox_they_are_not_denied(places):
    """The attempts are real ones: a kernel with limits alone lets them through."""
    harmless = ["reads the solutions", "reads the gradebook", "lists the home folder", "connects",
                "starts a program", "signals the grader"]  # fmt: skip
    names = "\n".join(f"{name} = {value!r}" for name, value in places.items())
    _, (_, *rest) = outputs([names + SET_UP, *(DENIED[name] for name in harmless)], "limits")
    assert not [said for said in rest if re.match(r"\w+Error: ", said)]


def test_what_it_may(places, monkeypatch):
    """Compute, keep files of its own, start threads; of the grader's environment it has nothing."""
    monkeypatch.setenv("TOKEN", "secret")
    secret = Path(places["folder"]) / "secret"
    remarks, said = outputs(
        [
            "import attention.explore, torch\nfrom attention.checks import check_split_heads\n"
            "check_split_heads(attention.split_heads).passed",
            "open('mine', 'w').write('text'), open('mine').read()",
            "import threading\nthread = threading.Thread(target=print, args=('thread',))\n"
            "thread.start(); thread.join()",
            "import os; 'TOKEN' in os.environ, os.environ['HOME'] == os.getcwd()",
            f"os.chmod({str(secret)!r}, 0o777)",
            "torch.randn(500, 500).matmul(torch.randn(500, 500)).shape",
        ]
    )
    assert remarks == []
    assert said == [
        *("True", "(4, 'text')", "thread\n", "(False, True)", "", "torch.Size([500, 500])"),
    ]
    assert secret.stat().st_mode & 0o777 == 0o600


def test_memory_and_files_have_an_end():
    _, said = outputs(
        [
            "kept = bytearray(8 * 2**30)",
            "import torch; torch.zeros(2 * 2**30)",
            "open('large', 'wb').write(bytes(17 * 2**20))",
            "1 + 1",
        ]
    )
    print(said)
    assert said[0].startswith("MemoryError")
    assert "can't allocate memory" in said[1]
    assert said[2].startswith("OSError") and "too large" in said[2]
    assert said[3] == "2"


def test_a_cell_that_ends_its_kernel_loses_no_other(monkeypatch):
    monkeypatch.setattr(run, "CELL_SECONDS", 3)
    remarks, said = outputs(
        [
            "x = 1",
            "import os; os._exit(0)",
            "while True: pass",
            "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
            "x + 1",
        ]
    )
    print(remarks)
    assert remarks == [
        "cell 2 ended its kernel",
        "cell 3 was stopped after 3 s",
        "cell 4 could not be stopped, so that its kernel was ended",
    ]
    assert [text.split(":")[0] for text in said[1:4]] == ["NotGraded"] * 3
    assert said[4] == "2"


def test_kernel_after_kernel():
    remarks, said = outputs(["import os; os._exit(0)"] * 6 + ["1"])
    assert len(remarks) == 7
    assert sum("ended its kernel" in remark for remark in remarks) == run.STARTS
    assert all(text.startswith("NotGraded") for text in said)


def test_the_notebooks_time_is_over(monkeypatch):
    monkeypatch.setattr(run, "NOTEBOOK_SECONDS", 8)
    monkeypatch.setattr(run, "CELL_SECONDS", 6)
    remarks, said = outputs(["while True: pass", "while True: pass", "1"])
    print(remarks)
    assert len(remarks) == 3 and all(text.startswith("NotGraded") for text in said)


def test_a_flood_is_cut_off():
    remarks, said = outputs(
        [
            "for i in range(300): print('x' * 10_000)",
            "print('x' * 40_000_000)",
            "raise ValueError('y' * 1_000_000)",
            "1",
        ]
    )
    sizes = [len(text) for text in said]
    print(remarks, sizes)
    assert sizes[0] < 2 * run.OUTPUT and said[0].endswith("(the rest is cut off)\n")
    assert sizes[1] < 2 * run.OUTPUT and sizes[2] < 2 * run.ERROR
    assert said[3] == "1"
