"""What the grader hears of a kernel: outputs within limits, replies, and whether a test ended."""

import json
import secrets
from collections import Counter

from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_output

OUTPUT = 500_000  # characters of one cell,
OUTPUTS = 5_000_000  # and of all
DISPLAYED = 1000  # characters that anything displayed counts for besides its own, for its layout
ERROR = 4000  # characters of an error's message
NOT_GRADED = "NotGraded"  # the name of the error in a cell that has not been run to its end
NO_REPLY = {"status": "error", "ename": "Error", "evalue": "it sent no reply of Jupyter's"}
TOKEN = "application/x-attention-test-ended"


class Client(NotebookClient):
    """Keeps what each cell's run gave, and no more output than is read.

    ended: the test cells that have run to their ends, as far as a kernel can show it.
    """

    def __init__(self, notebook: NotebookNode, **settings: object) -> None:
        super().__init__(notebook, **settings)
        self.on_cell_executed = self.keep_reply
        self.replies = {}
        self.sizes, self.cut = Counter(), set()
        self.tokens = {}
        self.ended = set()

    def ending(self, cell_index: int) -> str:
        """Code to put behind a test cell: it shows what only the grader knew before.

        A kernel's word that a cell ran counts for nothing, since an answer can replace what runs
        the cells. The code relies on no name that an answer may have given to something else.
        """
        self.tokens[cell_index] = secrets.token_hex(16)
        self.ended.discard(cell_index)
        shown = {TOKEN: self.tokens[cell_index]}
        return f"\n__import__('IPython').display.publish_display_data({shown})"

    def keep_reply(self, cell_index: int, execute_reply: dict, **_: object) -> None:
        self.replies[cell_index] = NO_REPLY | texts(execute_reply["content"])

    def process_message(
        self, msg: dict, cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        kind, content = msg["msg_type"], texts(msg["content"])
        try:
            return self.process_content(kind, msg | {"content": content}, cell, cell_index)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None  # no message of Jupyter's: a kernel's code can send what it likes

    def process_content(
        self, kind: str, msg: dict, cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        content = msg["content"]
        if kind == "display_data" and TOKEN in content["data"]:
            if content["data"][TOKEN] == self.tokens.get(cell_index):
                self.ended.add(cell_index)
            return None
        if kind == "error":
            for name in ("ename", "evalue"):
                content[name] = str(content.get(name, ""))[:ERROR]
            lines = content.get("traceback", [])[-100:]
            content["traceback"] = [str(line)[:ERROR] for line in lines]
        elif kind not in ("status", "execute_input"):
            if kind.startswith("comm_"):  # a widget's, which no page shows
                return None
            if cell_index in self.cut:
                return None
            size = len(json.dumps(content)) + DISPLAYED * (kind != "stream")
            if self.sizes[cell_index] + size > OUTPUT or self.sizes.total() + size > OUTPUTS:
                self.cut.add(cell_index)
                cell.outputs.append(new_output("stream", text="… (the rest is cut off)\n"))
                return None
            self.sizes[cell_index] += size
        return super().process_message(msg, cell, cell_index)


def texts(content: dict) -> dict:
    """A message's content without halves of signs, which can be neither written nor sent."""
    text = json.dumps(content, default=str, ensure_ascii=False)
    return json.loads(text.encode("utf-8", "replace"))


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Each stream in one output, a line as a terminal leaves it: after its last carriage return.

    nbclient does this too, in a time that grows as the square of a line's length.
    """
    kept, streams = [], {}
    for output in outputs:
        if output.output_type == "stream":
            if output.name in streams:
                streams[output.name].append(output.text)
                continue
            streams[output.name] = [output.text]
        kept.append(output)
    for output in kept:
        if output.output_type == "stream":
            lines = "".join(streams[output.name]).split("\n")
            output.text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return kept


def failure(why: str) -> NotebookNode:
    return new_output("error", ename=NOT_GRADED, evalue=why, traceback=[f"This cell {why}."])
