"""A kernel's process: started in a folder of its own, watched for what it takes, and ended."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import zmq.asyncio
from jupyter_client import AsyncKernelManager, KernelClient, session
from jupyter_client.kernelspec import KernelSpec
from traitlets import Bool, Unicode

from assignments.course import ROOT
from assignments.sandbox import template
from assignments.sandbox.client import Client

FOLDER = 64 * 2**20  # bytes on the disk that a kernel's folder may hold,
ENTRIES = 2000  # files and folders in it,
THREADS = 500  # and threads of the kernel
WATCH_SECONDS = 0.2  # from one look at these to the next
MESSAGE = 16 * 2**20  # bytes: a kernel that sends a longer one is cut off
WAITING = 4  # messages that wait here; the others do in the kernel, whose memory is limited

context = zmq.asyncio.Context()
context.setsockopt(zmq.MAXMSGSIZE, MESSAGE)
context.setsockopt(zmq.RCVHWM, WAITING)
# jupyter_client turns all in a header that looks like a date into one. A header of 16 MB takes 15
# seconds, and during them no other kernel is heard.
session.extract_dates = lambda header: header


ENVIRONMENT = {
    "PATH": os.defpath,
    "PYTHONPATH": str(ROOT),
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",  # as many kernels run side by side as there are cores
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Kernel(AsyncKernelManager):
    """interrupted: whether what it runs has had to be stopped."""

    mode = Unicode()
    interrupted = Bool(False)
    command = (sys.executable, "-m", "assignments.sandbox.kernel")

    @property
    def kernel_spec(self) -> KernelSpec:
        command = [*self.command, self.mode, "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")

    async def interrupt_kernel(self) -> None:
        self.interrupted = True
        await super().interrupt_kernel()

    def client(self, **settings: object) -> KernelClient:
        return super().client(context=context, **settings)  # else it makes one without limits


@contextmanager
def kernel_folder() -> Iterator[str]:
    """An empty folder, deleted afterwards, however deep the folders are that were made in it."""
    # Its name is short: the path of a socket has 107 characters at most.
    folder = tempfile.mkdtemp(prefix="kernel-")
    try:
        yield folder
    finally:
        # shutil.rmtree calls itself for each level, and a thousand are more than Python allows.
        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)


async def start(kernel: Kernel, client: Client, folder: str, log: object) -> None:
    if template.FORKS:
        kernel.provisioner = template.Provisioner(
            kernel_id=secrets.token_hex(), kernel_spec=kernel.kernel_spec, parent=kernel
        )
    try:
        await kernel.start_kernel(
            env=ENVIRONMENT | {"HOME": folder, "TMPDIR": folder},
            cwd=folder,
            stdout=log,
            stderr=log,
            extra_arguments=client.extra_arguments,
        )
        await client.async_start_new_kernel_client()
    except RuntimeError as error:
        log.seek(0)
        lines = log.read().decode(errors="replace").strip().splitlines()
        raise RuntimeError(f"no kernel starts: {lines[-1] if lines else error}") from None


async def watch(kernel: Kernel, folder: str) -> str:
    """End a kernel that takes too much. Returns of what, in words."""
    while not (why := excess(kernel, folder)):
        await asyncio.sleep(WATCH_SECONDS)
    kill(kernel)
    return why


def excess(kernel: Kernel, folder: str) -> str:
    """What a kernel has taken too much of, in words; "" where it has not.

    It deletes nothing in the sandbox, so that all that it holds on the disk is found in its folder.
    """
    with suppress(OSError, AttributeError):  # not Linux, or it has ended
        if len(os.listdir(f"/proc/{kernel.provisioner.pid}/task")) > THREADS:
            return f"started more than {THREADS} threads"
    folders, size, entries = [folder], 0, 0
    while folders:
        try:
            with os.scandir(folders.pop()) as listing:
                for entry in listing:
                    entries += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    if entries > ENTRIES:
                        return f"made more than {ENTRIES} files"
        except FileNotFoundError:
            pass  # without the sandbox it may delete
        except OSError:
            return "made a folder that cannot be listed"
        if size > FOLDER:
            return f"wrote more than {FOLDER // 2**20} MB"
    return ""


def kill(kernel: Kernel) -> None:
    with suppress(ProcessLookupError, AttributeError, TypeError):  # or it never started
        os.killpg(kernel.provisioner.pgid, signal.SIGKILL)


async def end(kernel: Kernel, client: Client) -> None:
    kill(kernel)
    if client.kc is not None:
        client.kc.stop_channels()
    with suppress(Exception):
        await asyncio.wait_for(kernel.shutdown_kernel(now=True), timeout=20)
