"""A process that has imported what every kernel imports, and from which kernels are forked.

To import torch, and what the explorers need, takes longer than most notebooks run. On Linux it is
done once for a class: the template waits, with one thread, and is forked for each notebook. Nothing
of one notebook reaches the next, since what a kernel does to its memory is its own. It shuts itself
in after the fork, as one that is started afresh does.
"""

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from jupyter_client import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner

ANSWER_SECONDS = 120
PARENT_DEATH_SIGNAL = 1  # linux/prctl.h
LONGEST = 2**16  # bytes of an order

running: dict[tuple[str, ...], "Template"] = {}


def forks() -> bool:
    """Whether this system has what it takes: Linux, and nothing around it that forbids handles."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return sys.platform == "linux"


FORKS = forks()


class Order(NamedTuple):
    """What a kernel is: the arguments of kernel.py, its environment and its folder."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str


class Forked:
    """A process that is no child of this one, so far as a provisioner needs a `Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, handle: int) -> None:
        self.pid, self.handle = pid, handle
        self.ended = select.poll()
        self.ended.register(handle, select.POLLIN)

    def poll(self) -> int | None:
        return 1 if self.ended.poll(0) else None  # only its parent learns how it ended

    def wait(self) -> int:
        self.ended.poll()
        os.close(self.handle)
        return 1

    def send_signal(self, number: int) -> None:
        """As a `Popen`, which sends none to what has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Template:
    """The grader's side. Its end, or the grader's, ends the process."""

    def __init__(self, command: tuple[str, ...], environment: dict[str, str], log: BinaryIO):
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.orders.settimeout(ANSWER_SECONDS)
        with theirs:
            self.process = subprocess.Popen(
                [*command, "template", str(theirs.fileno())],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def fork(self, order: Order, log: BinaryIO) -> Forked:
        """Raises RuntimeError where the process has ended, or does not answer."""
        try:
            socket.send_fds(self.orders, [json.dumps(order).encode()], [log.fileno()])
            pid, handles, *_ = socket.recv_fds(self.orders, LONGEST, 1)
        except OSError as error:
            raise RuntimeError(f"the process that forks them: {error}") from None
        if not pid:
            raise RuntimeError("the process that forks them has ended")
        return Forked(int(pid), handles[0])

    def end(self) -> None:
        self.orders.close()
        self.process.wait()


class Provisioner(LocalProvisioner):
    """Has a kernel forked, from the template of its manager's `command`."""

    async def launch_kernel(self, cmd: list[str], **settings: object) -> KernelConnectionInfo:
        command = self.parent.command
        if command not in running:
            running[command] = Template(command, settings["env"], settings["stderr"])
        order = Order(cmd[len(command) :], settings["env"], settings["cwd"])
        try:
            self.process = running[command].fork(order, settings["stderr"])
        except RuntimeError:
            running.pop(command).end()
            raise
        self.pid = self.pgid = self.process.pid
        self.cwd = settings["cwd"]
        return self.connection_info


def end_all() -> None:
    """End the templates, after which the system counts their kernels as this process's."""
    while running:
        running.popitem()[1].end()


def serve(number: int) -> list[str]:
    """The template's side: fork a kernel for each order. Returns in the kernel alone.

    Returns:
        The kernel's arguments. Its environment, folder and outputs are as the order has them, no
        other file is open, and it leads a session of its own.
    """
    if len(os.listdir("/proc/self/task")) > 1:  # of which a fork takes one along
        sys.exit("an import has started a thread")
    orders = socket.socket(fileno=number)
    while True:
        text, logs, *_ = socket.recv_fds(orders, LONGEST, 1)
        with suppress(ChildProcessError):  # what has ended, which is only seen here
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not text:
            sys.exit()
        pid = os.fork()
        if pid == 0:
            orders.close()
            return become(Order(*json.loads(text)), logs[0])
        handle = os.pidfd_open(pid)
        socket.send_fds(orders, [str(pid).encode()], [handle])
        os.close(handle)
        os.close(logs[0])


def become(order: Order, log: int) -> list[str]:
    import torch

    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)  # no kernel outlives the grader
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(order.environment, JPY_PARENT_PID=str(os.getppid()))
    os.chdir(order.folder)
    torch.seed()  # else all kernels would draw the same numbers; Python's generator sees to itself
    return order.arguments
