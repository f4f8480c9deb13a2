"""A notebook that misbehaves is still run, and its other cells are graded."""

import os
import tempfile
from pathlib import Path
from time import monotonic, sleep

import pytest
from nbformat.v4 import new_output

from assignments.sandbox import client, landlock, run, seccomp
from tests.assignments.sandbox.conftest import outputs

pytestmark = pytest.mark.skipif(
    not (landlock.version() and seccomp.available()), reason="this system has no Landlock"
)


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


@pytest.mark.parametrize("leave", ["exit()", "quit()", "exit", "import sys; sys.exit()"])
def test_a_cell_that_leaves_is_the_only_one_to_end(leave):
    remarks, said = outputs(["x = 1", leave, "x + 1"])
    assert remarks == []
    assert said[1].startswith("SystemExit") and said[2] == "2"


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
    assert remarks == ["cell 2 displayed too much at once, so that its kernel was ended"]
    assert sizes[0] < 2 * client.OUTPUT and said[0].endswith("(the rest is cut off)\n")
    assert sizes[1] < 2 * client.OUTPUT and sizes[2] < 2 * client.ERROR
    assert said[3] == "1"


def test_a_flood_of_all_cells_is_cut_off(monkeypatch):
    monkeypatch.setattr(client, "OUTPUTS", 2000)
    _, said = outputs(["print('x' * 900)"] * 3)
    assert [text.endswith("(the rest is cut off)\n") for text in said] == [False, False, True]


LARGE = """
session, kernel = get_ipython().kernel.session, get_ipython().kernel
parent, text = kernel.get_parent(), "x" * 3_900_000
for _ in range(100):
    session.send(kernel.iopub_socket, "stream", {"name": "stdout", "text": text}, parent=parent)
"""


def test_large_messages_wait_in_the_kernel(monkeypatch):
    """However busy the grader is: a hundred of 4 MB took what they hold."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    known, most = client.texts, 0

    def slow(content):
        nonlocal most
        sleep(0.02)
        most = max(most, resident())
        return known(content)

    monkeypatch.setattr(client, "texts", slow)
    before = resident()
    _, said = outputs([LARGE, "1"])
    assert said[0].endswith("(the rest is cut off)\n") and said[1] == "1"
    assert most - before < 150e6


def test_many_small_messages_arrive():
    _, (said, last) = outputs(["for i in range(3000): print(i, flush=True)", "1"])
    assert (said, last) == ("".join(f"{i}\n" for i in range(3000)), "1")


def test_streams_are_joined_as_a_terminal_shows_them():
    def stream(name, text):
        return new_output("stream", name=name, text=text)

    result = new_output("execute_result", data={"text/plain": "1"})
    outputs = [
        stream("stdout", "1 %\r50"),
        stream("stderr", "!"),
        result,
        stream("stdout", " %\rA\n"),
    ]
    one, two, three = client.joined(outputs)
    assert (one.text, two.text, three) == ("A\n", "!", result)


def test_a_long_line_takes_no_longer_than_many_short_ones():
    """A regular expression over 490,000 characters of one line took minutes."""
    line = new_output("stream", name="stdout", text="x" * client.OUTPUT)
    start = monotonic()
    client.joined([line])
    assert monotonic() - start < 1


def test_a_deep_folder_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    deep = "import os\nfor i in range(1100):\n    os.mkdir('d')\n    os.chdir('d')"
    remarks, said = outputs([deep, "1"])
    assert (remarks, said) == ([], ["", "1"])
    assert list(Path(tmp_path).iterdir()) == []
