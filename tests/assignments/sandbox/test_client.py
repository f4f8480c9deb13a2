"""Whatever a kernel sends is heard as what it is, or not at all."""

import nbformat
import pytest
from jupyter_client import session
from nbclient.exceptions import CellExecutionComplete
from nbformat.v4 import new_code_cell, new_notebook

from assignments.sandbox import process
from assignments.sandbox.client import Client

MESSAGES = {
    "half a sign": ("stream", {"name": "stdout", "text": "x\ud800"}, "x?"),
    "an error without its words": ("error", {}, ""),
    "an error of numbers": ("error", {"ename": 1, "evalue": 2, "traceback": [3]}, "2"),
    "a stream without text": ("stream", {"name": "stdout"}, None),
    "data that is none": ("display_data", {"data": 3}, None),
    "an unknown kind": ("shout", {"text": "x"}, None),
}


def message(kind, content):
    header = {"msg_id": "1", "msg_type": kind}
    return {"msg_type": kind, "content": content, "header": header, "parent_header": header}


@pytest.fixture
def client():
    client = Client(new_notebook(cells=[new_code_cell("1")]), record_timing=False)
    client.clear_before_next_output = False  # as when a cell begins
    return client


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_of_any_form(name, client):
    kind, content, heard = MESSAGES[name]
    cell = client.nb.cells[0]
    client.process_message(message(kind, content), cell, 0)
    said = [output.get("text", output.get("evalue")) for output in cell.outputs]
    assert said == ([] if heard is None else [heard])
    nbformat.writes(client.nb).encode()


def test_a_reply_of_any_form(client):
    client.keep_reply(0, {"content": {"evalue": "\udfff"}})
    assert client.replies[0]["status"] == "error" and client.replies[0]["evalue"] == "?"


def test_many_small_displays_are_cut_off(client):
    """Each is laid out by itself, which takes longer than its characters tell."""
    cell = client.nb.cells[0]
    for _ in range(600):
        client.process_message(message("display_data", {"data": {"text/plain": "x"}}), cell, 0)
    assert len(cell.outputs) < 502 and "cut off" in cell.outputs[-1].text


def test_no_header_is_searched_for_dates():
    """Half a million of them would stop the loop that hears all kernels."""
    assert process.session is session
    sender = session.Session(key=b"")
    sent = sender.msg("stream") | {"parent_header": {"day": "2020-01-01T00:00:00"}}
    heard = sender.deserialize(sender.feed_identities(sender.serialize(sent))[1])
    assert heard["parent_header"] == {"day": "2020-01-01T00:00:00"}


def test_the_end_of_a_cell_is_still_heard(client):
    idle = message("status", {"execution_state": "idle"})
    with pytest.raises(CellExecutionComplete):
        client.process_message(idle, client.nb.cells[0], 0)
