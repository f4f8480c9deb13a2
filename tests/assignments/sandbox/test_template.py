"""Kernels that are forked from one process are as those that are started afresh."""

import os
import signal
import subprocess
import time

import pytest

from assignments.sandbox import landlock, process, seccomp, template
from tests.assignments.sandbox.conftest import outputs

pytestmark = pytest.mark.skipif(
    not (landlock.version() and seccomp.available() and template.FORKS), reason="not this Linux"
)
DRAWS = ["import torch; torch.randn(2).tolist()", "import random; random.random()"]


def test_no_notebook_sees_another():
    first, second = (
        outputs([*DRAWS, "import math; hasattr(math, 'mine'), vars(math).update(mine=1)"])
        for _ in range(2)
    )
    assert first[0] == second[0] == []
    *drawn, kept = zip(first[1], second[1], strict=True)
    assert all(one != other for one, other in drawn), "both draw the same numbers"
    assert kept == ("(False, None)",) * 2


def test_it_is_as_one_that_is_started_anew(monkeypatch):
    """The same names, settings and folders; and it leads a session, so that it ends as a whole."""
    cells = [
        "import os, sys, signal, matplotlib.pyplot as plt; plt.plot([1, 2]);",
        "sys.path, sys.argv[0], len(sys.argv), sorted(os.environ), plt.get_backend()",
        "os.getcwd() == os.environ['HOME'] == os.environ['TMPDIR'], os.environ.get('PYTHONPATH')",
        "os.getsid(0) == os.getpgid(0) == os.getpid(), signal.getsignal(signal.SIGCHLD)",
        "sys.stdin.closed, os.fstat(0).st_size",
    ]
    forked = outputs(cells)
    monkeypatch.setattr(template, "FORKS", False)
    assert forked == outputs(cells)


def test_a_kernel_cannot_order_another():
    """No socket of the template's is open in it: all that are open are its own."""
    code = (
        "import os, socket\nfound = []\n"
        "for number in range(3, 100):\n"
        "    try:\n"
        "        kind = socket.socket(fileno=os.dup(number)).type\n"
        "    except OSError:\n"
        "        continue\n"
        "    if kind == socket.SOCK_SEQPACKET:\n"
        "        found.append(number)\n"
        "found"
    )
    assert outputs([code]) == ([], ["[]"])


def test_a_template_that_has_ended_is_told_and_started_anew():
    template.end_all()  # those of tests before
    outputs(["1"])
    (only,) = template.running.values()
    os.kill(only.process.pid, signal.SIGKILL)
    only.process.wait()
    with pytest.raises(RuntimeError, match="no kernel starts: "):
        outputs(["1"])
    assert outputs(["1 + 1"]) == ([], ["2"])
    template.end_all()
    assert only.process.returncode == -signal.SIGKILL and not template.running


def test_no_kernel_outlives_its_template(tmp_path):
    """As where the grader is killed: the template ends when nobody can order any more."""
    environment = process.ENVIRONMENT | {"HOME": str(tmp_path)}
    order = template.Order(["limits", "-f", f"{tmp_path}/k.json"], environment, str(tmp_path))
    with open(tmp_path / "log", "wb") as log:
        started = template.Template(process.Kernel.command, environment, log)
        kernel = started.fork(order, log)
        while not (tmp_path / "k.json").exists():
            assert kernel.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
    started.end()
    deadline = time.monotonic() + 30
    while kernel.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    if kernel.poll() is None:
        kernel.kill()
        pytest.fail("it still runs")
    kernel.wait()


def test_what_has_ended_takes_any_signal():
    """A kernel that a student's code has ended is interrupted and killed all the same."""
    ended = subprocess.Popen(["true"])
    forked = template.Forked(ended.pid, os.pidfd_open(ended.pid))
    ended.wait()
    forked.send_signal(signal.SIGINT)
    forked.kill()
    assert forked.wait() == 1
