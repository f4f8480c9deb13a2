"""Run a student's notebook in the sandboxed kernel, within limits of time."""

import asyncio
import tempfile
from time import monotonic

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from assignments.course import cell_name, is_test
from assignments.sandbox.client import ERROR, Client, failure, joined
from assignments.sandbox.process import Kernel, context, end, excess, kernel_folder, start, watch

CELL_SECONDS = 30
NOTEBOOK_SECONDS = 240
STARTUP_SECONDS = 120
STARTS = 4  # of a kernel, for one notebook


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


async def run_cell(
    client: Client, cell: NotebookNode, index: int, left_out: dict[int, str]
) -> None:
    source, client.km.interrupted = cell.source, False
    if is_test(cell):
        cell.source += client.ending(index)
    try:
        await client.async_execute_cell(cell, index)
    except DeadKernelError:
        raise Stopped(index, "ended its kernel") from None
    except CellTimeoutError:
        # It has replied in time, and the last word of what it displays has not come: a message of
        # it was longer than is taken, or too many are waiting.
        what = "could not be stopped" if client.km.interrupted else "displayed too much at once"
        raise Stopped(index, f"{what}, so that its kernel was ended") from None
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


def mark_rest(notebook: NotebookNode, left_out: dict[int, str], why: str) -> None:
    """Give every cell that was not run an error: nbgrader counts silence as right."""
    for index, cell in enumerate(notebook.cells):
        not_run = cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None
        if not_run and index not in left_out:
            cell.outputs = [failure(why)]
            left_out[index] = why
