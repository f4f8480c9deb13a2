"""`make refresh` takes out what differs between two runs, and refuses what it cannot take out."""

import json

import nbformat
import pytest

from tools.refresh import fresh_copy, main
from tools.widget_state import WIDGET_STATE, WIDGET_VIEW

pytestmark = pytest.mark.slow  # each runs a kernel

SLIDER_AND_VIEW = """
from ipywidgets import IntProgress, IntSlider, VBox, jslink

unseen = IntSlider(description="unseen")
slider, view = IntSlider(description="d_model"), IntProgress(description="view")
jslink((slider, "value"), (view, "value"))
jslink((unseen, "value"), (view, "value"))
VBox([slider, view])
"""


def write(folder, *codes, tags=()):
    """A notebook as an editor might leave it: without ids, with counts and times of its own."""
    cells = [
        {
            "cell_type": "code",
            "source": code,
            "metadata": {"tags": list(tags), "ExecuteTime": {"start_time": "today"}},
            "outputs": [],
            "execution_count": 40,
        }
        for code in codes
    ]
    path = folder / "01-sample.ipynb"
    metadata = {"kernelspec": {"name": "python3", "display_name": "mine"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
    path.write_text(json.dumps(notebook), "utf-8")
    return path


def test_a_second_run_changes_no_byte(tmp_path):
    path = write(tmp_path, "print('a', flush=True)\nprint('b')", SLIDER_AND_VIEW)
    assert main([str(path)]) == 0
    first = path.read_bytes()
    assert main([str(path)]) == 0
    assert path.read_bytes() == first

    notebook = nbformat.reads(first.decode(), as_version=4)
    assert [cell.execution_count for cell in notebook.cells] == [1, 2]
    assert [cell.id for cell in notebook.cells] == ["cell-01", "cell-02"]
    assert [dict(cell.metadata) for cell in notebook.cells] == [{"tags": []}] * 2
    assert notebook.cells[0].outputs[0].text == "a\nb\n"
    assert notebook.metadata.kernelspec.display_name == "Python 3"
    assert first.endswith(b"\n}\n")

    saved = notebook.metadata.widgets[WIDGET_STATE]["state"]
    shown = notebook.cells[1].outputs[0].data[WIDGET_VIEW]
    assert saved[shown["model_id"]]["model_name"] == "VBoxModel"
    descriptions = {model["state"].get("description") for model in saved.values()}
    assert "d_model" in descriptions
    assert "unseen" not in descriptions, "kept a widget that no cell shows"
    assert sum(model["model_name"] == "LinkModel" for model in saved.values()) == 1


def test_an_expected_error_keeps_its_message_only(tmp_path):
    path = write(tmp_path, "import torch\ntorch.zeros(2).view(3)", tags=["raises-exception"])
    (output,) = fresh_copy(path).cells[0].outputs
    assert output.traceback == ["RuntimeError: shape '[3]' is invalid for input of size 2"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("object()", "0x"),
        ("import warnings\nwarnings.warn('old')", "UserWarning: old"),
        ("import torch\nprint(torch.__file__)", "site-packages"),
    ],
)
def test_what_cannot_be_repeated_is_refused(tmp_path, capsys, code, message):
    path = write(tmp_path, code)
    before = path.read_bytes()
    assert main([str(path)]) == 1
    assert path.read_bytes() == before
    printed = capsys.readouterr().out
    assert "FAILED" in printed
    assert message in printed
