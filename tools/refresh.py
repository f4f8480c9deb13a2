"""Run chapters and store what they printed and drew, so that the same run gives the same bytes.

    python -m tools.refresh                        every chapter
    python -m tools.refresh book/05-masking.ipynb  one of them

A second run changes no byte. What differs from run to run or from machine to machine is taken out:
times, the kernel's version, the random ids of widgets, widgets that no page shows, the frames of
tracebacks. An output that holds a path or an address of this machine is refused with the cell
named, since no rule can fix it well; so is a cell that fails without the tag `raises-exception`.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from traitlets.config import Config

from tools.kernels import unix_sockets
from tools.widget_state import LINKS, WIDGET_STATE, link_ends, reached, references, views

BOOK = Path(__file__).resolve().parents[1] / "book"
CELL_METADATA = ("tags", "mystnb", "slideshow")

OF_THIS_MACHINE = re.compile(
    r"0x[0-9a-fA-F]{6,}"
    r"|(?<![\w.~/-])(?:file:)?/+(?:home|Users|root|tmp|var|usr|opt|mnt|private|content|work|workspaces?)/"
    r"|\b[A-Za-z]:\\\w|site-packages|ipykernel_\d+"
)


def chapters() -> list[Path]:
    """The landing page and the chapters, in reading order."""
    return [BOOK / "index.ipynb", *sorted(BOOK.glob("[0-9]*.ipynb"))]


def notebooks() -> list[Path]:
    """All of the book that is run: the chapters, then the notebooks of its appendix."""
    return [*chapters(), *sorted(set(BOOK.glob("*.ipynb")) - set(chapters()))]


def fresh_copy(
    path: Path, after_cell: Callable[[NotebookClient], None] | None = None
) -> NotebookNode:
    """The chapter as a run of its cells makes it now, normalised. The file stays as it is.

    ``after_cell`` is called with the client after every cell of code, while the kernel still runs.
    """
    raw = json.loads(path.read_text("utf-8"))
    name_cells(raw)
    notebook = nbformat.reads(json.dumps(raw), as_version=4)
    # The state of an earlier run would otherwise stay where no cell shows a widget any more.
    notebook.metadata.pop("widgets", None)
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        config=Config(AsyncKernelManager=unix_sockets()),
        timeout=300,
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    if after_cell:
        client.on_cell_executed = lambda **_: after_cell(client)
    client.execute()
    return normalised(notebook, path.stem)


def normalised(notebook: NotebookNode, name: str) -> NotebookNode:
    """The notebook without what differs between runs; ValueError for what cannot be taken out."""
    for cell in notebook.cells:
        cell.metadata = NotebookNode({k: v for k, v in cell.metadata.items() if k in CELL_METADATA})
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                # The frames name this machine's files; the last line is the message.
                output.traceback = [f"{output.ename}: {output.evalue}"]
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
    notebook.metadata.kernelspec = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    notebook.metadata.language_info = {"name": "python"}
    if "widgets" in notebook.metadata:
        notebook = with_stable_widgets(notebook, name)
    refuse_machine_text(notebook, name)
    return notebook


def name_cells(raw: dict) -> None:
    """Give cells without an id one that says where the cell was when it got it."""
    raw.update(nbformat=4, nbformat_minor=5)
    taken = {cell["id"] for cell in raw["cells"] if "id" in cell}
    for position, cell in enumerate(raw["cells"], start=1):
        if "id" not in cell:
            wanted = f"cell-{position:02}"
            while wanted in taken:
                wanted += "b"
            cell["id"] = wanted
            taken.add(wanted)


def with_stable_widgets(notebook: NotebookNode, name: str) -> NotebookNode:
    """Keep the widgets that a cell shows and the links between them, each under an id of its own.

    The id is made of the notebook's name and the order in which the page shows the widgets.
    """
    models = notebook.metadata.widgets[WIDGET_STATE]["state"]
    shown = list(dict.fromkeys(reached(models, views(notebook))))
    links = [
        model_id for model_id, model in models.items()
        if model["model_name"] in LINKS
        and all(end in shown for end in references(model["state"]))
    ]  # fmt: skip
    links.sort(key=lambda link: [(shown.index(m), trait) for m, trait in link_ends(models[link])])

    kept = {model_id: models[model_id] for model_id in shown + links}
    for model in kept.values():
        if model["model_name"] == "LayoutModel" or model["model_name"].endswith("StyleModel"):
            # A null here means "as the front end draws it", and so does a trait that is absent.
            model["state"] = {k: v for k, v in model["state"].items() if v is not None}
    notebook.metadata.widgets[WIDGET_STATE]["state"] = kept

    text = nbformat.writes(notebook)
    for position, model_id in enumerate(kept):
        stable = hashlib.sha256(f"{name} {position}".encode()).hexdigest()[:32]
        text = text.replace(model_id, stable)
    return nbformat.reads(text, as_version=4)


def refuse_machine_text(notebook: NotebookNode, name: str) -> None:
    """Raise ValueError for an output with a path or an address of the machine that ran it."""
    for position, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            data = {k: v for k, v in output.get("data", {}).items() if not k.startswith("image/")}
            text = json.dumps({**output, "data": data}, ensure_ascii=False)
            if found := OF_THIS_MACHINE.search(text):
                around = text[max(found.start() - 60, 0) : found.end() + 60]
                raise ValueError(
                    f"{name}, cell {position} ({cell.id}): its output names a path or an address of"
                    f" this machine, which the next run would not repeat: …{around}…"
                )


def main(arguments: list[str]) -> int:
    """Refresh the named notebooks, or all. One that fails keeps its old outputs."""
    failures = 0
    for path in [Path(argument).resolve() for argument in arguments] or notebooks():
        before = path.read_text("utf-8")
        try:
            after = nbformat.writes(fresh_copy(path)) + "\n"
        except CellExecutionError as error:
            source = str(error).split("------------------")[1].strip()
            print(f"{path.name}: FAILED, left as it was.\n{source}\n{error.ename}: {error.evalue}")
            failures += 1
            continue
        except ValueError as error:
            print(f"{path.name}: FAILED, left as it was.\n{error}")
            failures += 1
            continue
        path.write_text(after, "utf-8")
        print(f"{path.name}: {'unchanged' if after == before else 'refreshed'}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
