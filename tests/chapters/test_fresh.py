"""What a chapter stores is what a fresh run gives: the widgets' frames and links, the pictures.

nbval compares the text. It looks neither at widgets nor at pictures, so a slider that lost its
picture, or a figure of an older formula, would stay on the page unseen. Here every chapter is run
once more; pictures are compared by the numbers they were drawn from, never by pixels. What the run
takes, in time and in memory, has a limit.
"""

import base64
import copy
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest

from tests.chapters.comparing import PICTURE_TOLERANCE, TOLERANCE, compare, pictures, widgets
from tools.refresh import chapters, fresh_copy
from tools.widget_state import WIDGET_STATE

# Readers run a chapter on two cores, and in half of the 2 GB that Binder gives. From the eighth on
# chapters train something. The seconds are those of a machine that takes REFERENCE for PIECE, which
# is work of the kind that chapters do; a slower one has more of them.
SECONDS, SECONDS_TO_TRAIN = 30, 60
MEMORY = 10**9
PIECE = """
import time, torch
from attention.trained.who_and_whom import train
torch.set_num_threads(1)
train(8, 2, seed=0, steps=10)  # what only the first step takes is no measure
start = time.process_time()
train(8, 2, seed=0, steps=300)
print(time.process_time() - start)
"""
REFERENCE = 3.5  # seconds of the processor, idle, the second of three: 3.2, 3.5, 3.7


def trains(path):
    return path.stem[:2].isdecimal() and int(path.stem[:2]) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_stored_chapter_is_what_a_run_gives(path, record_property):
    memory = seconds = 0

    def look(client):
        nonlocal memory, seconds
        kernel = client.km.provisioner.pid
        memory = peak_memory(kernel)
        # Of the processor, which is what it takes on a machine that does nothing else.
        seconds = sum(psutil.Process(kernel).cpu_times()[:2])

    fresh = fresh_copy(path, after_cell=look)
    taken = f"{memory / 1e6:5.0f} MB {seconds:5.1f} s  {path.name}"
    record_property("taken", taken)

    found = differences(nbformat.read(path, as_version=4), fresh)
    assert not found, "\n".join(
        [f"{path.name} is stale; `make refresh` renews it:", *found[:20], f"{len(found)} in all"]
    )
    limit = SECONDS_TO_TRAIN if trains(path) else SECONDS
    if seconds >= limit:  # on the reference machine too?
        piece = time_of_piece()
        limit = allowed(limit, piece)
        taken += f" of {limit:.1f} s, where the piece takes {piece:.1f} s"
    assert seconds < limit, taken
    assert memory < MEMORY, taken


def time_of_piece() -> float:
    """What this machine's processor takes for PIECE, in a process without the signature checks."""
    run = subprocess.run([sys.executable, "-c", PIECE], capture_output=True, text=True, check=True)
    return float(run.stdout)


def allowed(seconds: float, piece: float) -> float:
    """A limit of the reference machine's on one that takes so long for the piece; never a lower."""
    return seconds * max(1, piece / REFERENCE)


@pytest.mark.parametrize("slowness", [1, 2, 4])
def test_twice_the_work_is_over_the_limit_on_every_machine(slowness):
    """What keeps within it on the reference machine does so on a slower one, and nothing more."""
    limit = allowed(SECONDS, slowness * REFERENCE)
    assert 0.9 * SECONDS * slowness < limit <= 1.1 * SECONDS * slowness


def test_a_quicker_machine_has_no_less_time():
    assert allowed(SECONDS, REFERENCE / 2) == SECONDS


def peak_memory(pid: int) -> int:
    """The most bytes that a process has held so far; 0 on a system that does not tell, as macOS."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    return 1024 * int(re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)[1])


def differences(stored, fresh) -> list[str]:
    """Where two runs of a notebook differ, in widgets and pictures, a line for each place."""
    return [
        *compare(widgets(stored), widgets(fresh), "widget", TOLERANCE),
        *compare(pictures(stored), pictures(fresh), "picture", PICTURE_TOLERANCE),
    ]


# What follows breaks a stored chapter in one place and asks that the comparison says so.


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
