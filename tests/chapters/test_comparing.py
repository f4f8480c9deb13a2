"""Breaks a stored chapter in one place, and asks that the comparison with a fresh run says so.

nbval compares the text. It looks neither at widgets nor at pictures, so a slider that lost its
picture, or a figure of an older formula, would stay on the page unseen. The tests in Colab's
packages run every chapter again and compare them (tests/clients/test_colab.py).
"""

import base64
import copy

import nbformat
import numpy as np
import pytest

from tests.chapters.comparing import differences, pictures
from tools.refresh import chapters
from tools.widget_state import WIDGET_STATE


def a_number_of_a_frame(notebook):
    buffer = drawn_from_tensors(notebook)["buffers"][0]
    numbers = np.frombuffer(base64.b64decode(buffer["data"]), "<f4").copy()
    numbers[len(numbers) // 2] += 0.01
    buffer["data"] = base64.b64encode(numbers.tobytes()).decode()


def the_place_of_a_frame(notebook):
    frames = drawn_from_tensors(notebook)["state"]["frames"]
    tensors = [v for v in next(iter(frames.values())).values() if isinstance(v, dict) and "at" in v]
    tensors[0]["at"] += 1


def a_frame(notebook):
    frames = next(m["state"]["frames"] for m in models(notebook) if "frames" in m["state"])
    del frames[list(frames)[-1]]


def the_drawing_code(notebook):
    next(m for m in models(notebook) if "_esm" in m["state"])["state"]["_esm"] += "\n// another"


def a_link(notebook):
    state = notebook.metadata.widgets[WIDGET_STATE]["state"]
    del state[next(k for k, model in state.items() if model["model_name"] == "LinkModel")]


def the_target_of_a_link(notebook):
    next(m for m in models(notebook) if m["model_name"] == "LinkModel")["state"]["target"][1] = "x"


def an_option_of_a_slider(notebook):
    slider = next(m for m in models(notebook) if m["model_name"] == "SelectionSliderModel")
    slider["state"]["_options_labels"][0] = "5"


def the_words_of_a_picture(notebook):
    next(iter(pictures(notebook).values()))["alt"] += "."


def a_number_of_a_picture(notebook):
    values = next(iter(pictures(notebook).values()))["values"]
    row = values[next(iter(values))][0]
    row[0] += 0.01


def models(notebook):
    return notebook.metadata.widgets[WIDGET_STATE]["state"].values()


def drawn_from_tensors(notebook):
    """The first view whose frames hold tensors: those of stepped drawings hold SVG alone."""
    return next(m for m in models(notebook) if "buffers" in m and m["buffers"][0]["data"])


@pytest.fixture(scope="module")
def chapter_3():
    return nbformat.read(chapters()[0].parent / "03-splitting-heads.ipynb", as_version=4)


def test_a_chapter_does_not_differ_from_itself(chapter_3):
    assert differences(chapter_3, copy.deepcopy(chapter_3)) == []


@pytest.mark.parametrize(
    "change",
    [
        a_number_of_a_frame,
        the_place_of_a_frame,
        a_frame,
        the_drawing_code,
        a_link,
        the_target_of_a_link,
        an_option_of_a_slider,
        the_words_of_a_picture,
        a_number_of_a_picture,
    ],
)
def test_a_change_is_found(chapter_3, change):
    changed = copy.deepcopy(chapter_3)
    change(changed)
    assert differences(changed, chapter_3)
