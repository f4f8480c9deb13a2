"""Run a student's notebook in the sandboxed kernel, within limits of time and of output."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import zmq.asyncio
from jupyter_client import AsyncKernelManager, KernelClient
from jupyter_client.kernelspec import KernelSpec
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from traitlets import Unicode

from assignments.course import ROOT, cell_name, is_test
from assignments.sandbox.client import ERROR, Client, failure, joined

CELL_SECONDS = 30
NOTEBOOK_SECONDS = 240
STARTUP_SECONDS = 120
STARTS = 4  # of a kernel, for one notebook
FOLDER = 64 * 2**20  # bytes on the disk that a kernel's folder may hold,
ENTRIES = 2000  # files and folders in it,
THREADS = 500  # and threads of the kernel
WATCH_SECONDS = 0.2  # from one look at these to the next
MESSAGE = 16 * 2**20  # bytes: a kernel that sends a longer one is cut off
WAITING = 4  # messages that wait here; the others do in the kernel, whose memory is limited

context = zmq.asyncio.Context()
context.setsockopt(zmq.MAXMSGSIZE, MESSAGE)
context.setsockopt(zmq.RCVHWM, WAITING)


class Kernel(AsyncKernelManager):
    mode = Unicode()

    @property
    def kernel_spec(self) -> KernelSpec:
        command = [
            sys.executable,
            "-m",
            "assignments.sandbox.kernel",
            self.mode,
            "-f",
            "{connection_file}",
        ]
        return KernelSpec(argv=command, display_name="Python 3", language="python")

    def client(self, **settings: object) -> KernelClient:
        return super().client(context=context, **settings)  # else it makes one without limits


class Stopped(Exception):
    """The kernel ended in a cell, or could not be stopped otherwise."""

    def __init__(self, cell: int, why: str) -> None:
        self.cell, self.why = cell, why


async def run(notebook: NotebookNode, mode: str) -> list[str]:
    """Run all cells, as far as it goes; their outputs are in the notebook afterwards.

    A cell that ends its kernel, or that has to be stopped, has an error and its points are lost.
    After a kernel's end the notebook is run once more without that cell, so that the cells after it
    are seen too.

    mode: "full" or "limits", see kernel.py.

    Returns:
        What there is to say about it, in words.

    Raises:
        RuntimeError: no kernel starts.
    """
    left_out, deadline = {}, monotonic() + NOTEBOOK_SECONDS
    for _ in range(STARTS):
        try:
            await run_once(notebook, mode, left_out, deadline)
            break
        except Stopped as stopped:
            left_out[stopped.cell] = stopped.why
            notebook.cells[stopped.cell].outputs = [failure(stopped.why)]
    else:
        mark_rest(notebook, left_out, "was not run: kernel after kernel had ended")
    return [f"{cell_name(notebook, index)} {why}" for index, why in sorted(left_out.items())]


async def run_once(
    notebook: NotebookNode, mode: str, left_out: dict[int, str], deadline: float
) -> None:
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            if index in left_out:
                cell.outputs = [failure(left_out[index])]
    with kernel_folder() as folder:
        kernel = Kernel(
            mode=mode,
            context=context,
            transport="ipc",
            connection_file=f"{folder}/kernel.json",
        )
        client = Client(
            notebook,
            km=kernel,
            allow_errors=True,
            timeout_func=lambda _: max(min(CELL_SECONDS, deadline - monotonic()), 0.1),
            interrupt_on_timeout=True,
            error_on_timeout={"ename": "Timeout", "evalue": "", "traceback": []},
            raise_on_iopub_timeout=True,
            iopub_timeout=10,
            startup_timeout=STARTUP_SECONDS,
            record_timing=False,
            store_widget_state=False,
            extra_arguments=["--HistoryManager.hist_file=:memory:"],
        )
        with tempfile.TemporaryFile() as log:
            watching = None
            try:
                await start(kernel, client, folder, log)
                watching = asyncio.create_task(watch(kernel, folder))
                for index, cell in enumerate(notebook.cells):
                    if cell.cell_type != "code" or index in left_out or not cell.source.strip():
                        continue
                    if monotonic() > deadline:
                        why = f"was not run: the notebook's {NOTEBOOK_SECONDS} s were over"
                        mark_rest(notebook, left_out, why)
                        return
                    try:
                        await run_cell(client, cell, index, left_out)
                    finally:
                        why = watching.result() if watching.done() else excess(kernel, folder)
                        if why:
                            raise Stopped(index, f"{why}, so that its kernel was ended")
            finally:
                await end(kernel, client)
                if watching:
                    watching.cancel()


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
    try:
        await kernel.start_kernel(
            env={
                "HOME": folder,
                "TMPDIR": folder,
                "PATH": os.defpath,
                "PYTHONPATH": str(ROOT),
                "LANG": "C.UTF-8",
                "OMP_NUM_THREADS": "1",  # as many kernels run side by side as there are cores
                "OPENBLAS_NUM_THREADS": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
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


async def run_cell(
    client: Client, cell: NotebookNode, index: int, left_out: dict[int, str]
) -> None:
    source = cell.source
    if is_test(cell):
        cell.source += client.ending(index)
    try:
        await client.async_execute_cell(cell, index)
    except DeadKernelError:
        raise Stopped(index, "ended its kernel") from None
    except CellTimeoutError:
        raise Stopped(index, "could not be stopped, so that its kernel was ended") from None
    finally:
        cell.source = source
    cell.outputs = joined(cell.outputs)
    reply = client.replies[index]
    if reply["status"] == "ok":
        if is_test(cell) and index not in client.ended and not has_error(cell):
            left_out[index] = "did not run to its end: an earlier cell has changed how cells run"
            cell.outputs.append(failure(left_out[index]))
        return
    if reply["ename"] == "Timeout":
        left_out[index] = f"was stopped after {CELL_SECONDS} s"
        cell.outputs = [o for o in cell.outputs if o.output_type != "error"]
        cell.outputs.append(failure(left_out[index]))
    elif not has_error(cell):
        cell.outputs.append(failure(f"raised {reply['ename']}: {reply['evalue'][:ERROR]}"))


def has_error(cell: NotebookNode) -> bool:
    return any(output.output_type == "error" for output in cell.outputs)


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


def mark_rest(notebook: NotebookNode, left_out: dict[int, str], why: str) -> None:
    """Give every cell that was not run an error: nbgrader counts silence as right."""
    for index, cell in enumerate(notebook.cells):
        not_run = cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None
        if not_run and index not in left_out:
            cell.outputs = [failure(why)]
            left_out[index] = why
