"""The sliders in a real JupyterLab and in a real Notebook 7, before and after the kernel stops.

What is drawn is compared with the frames that the committed notebook holds for the place where the
controls stand. The clients run as they come: a cell out of sight is skipped by the browser but
attached, so every explorer of a page can be asked without scrolling to it first.
"""

import base64
import json
import re
import time
from contextlib import contextmanager

import nbformat
import numpy as np
import pytest
from nbformat.sign import NotebookNotary
from playwright.sync_api import expect

from attention.pretrained.maps import from_levels
from tests.clients.conftest import BOOK
from tools.refresh import chapters
from tools.widget_state import WIDGET_STATE, reached, views

PATIENCE = 60  # seconds that anything may take on a busy machine
RUN = 240  # and a whole chapter: where it trains a model, it may take 60 s of a processor

# Two chapters of each part: between them they have every kind of explorer. All chapters' pages are
# tried in `tests/site`, and all their cells in `test_colab.py`.
LAB = (
    "02-projecting-to-q-k-v",
    "06-weighted-sums-and-merging",
    "09-before-transformers",
    "12-two-layers-together",
    "16-exact-in-tiles",
    "20-claims-tested",
)
EVERY_CONTROL = "01-from-tokens-to-vectors"
LIVE = [*(("jupyterlab", stem) for stem in LAB), ("notebook", EVERY_CONTROL)]
SAVED = [("jupyterlab", "20-claims-tested"), ("notebook", EVERY_CONTROL)]

# What an explorer shows. As one string: Playwright would look at every value of a nested answer.
READ = """
explorer => {
  const picture = explorer.querySelector("[data-picture]");
  return JSON.stringify({
    status: explorer.querySelector("[role=status]").textContent,
    error: picture.querySelector(".error")?.textContent.trim() ?? null,
    markup: picture.innerHTML,
    matrices: [...picture.querySelectorAll("svg[data-name]")].map(svg => {
      // A panel off the screen is drawn a moment later: its matrix may be one of before.
      const matrix = picture.matrices.find(({name}) => name === svg.dataset.name);
      return [svg.dataset.name, Array.from(matrix?.tensor.data ?? [], String)];
    }),
  });
}
"""

# Where a control stands, as an index. A slider says it to screen readers alone.
POSITION = "c => c.type === 'checkbox' ? +c.checked : c.selectedIndex ?? +c.ariaValueNow"

# Every cell has run: none waits for its turn, none was never reached.
ALL_RAN = """
() => [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")]
  .every(prompt => /\\d/.test(prompt.textContent))
"""

# The notebook has its kernel: before that, the sign of an idle one stands beside "No Kernel".
KERNEL_WAITS = """
() => document.querySelector(".jp-Notebook-ExecutionIndicator")?.dataset.status === "idle"
  && /Python/.test(document.querySelector(".jp-Toolbar-kernelName")?.textContent)
"""

# What is typed, and what the picture shows of it and of nothing else.
OWN = {
    "sentence": ("add the baker saw a dog", "baker"),
    "sentence with two verbs": ("add the baker saw a dog", "baker"),
    "sequence": ("addbmxyzaddbm", "addbmxyzaddbm"),
    "date": ("add may 3 1999", "add"),
}

ERRORS = "[data-mime-type='application/vnd.jupyter.stderr']"

expect.set_options(timeout=PATIENCE * 1000)


class Stored:
    """An explorer as the committed notebook holds it: its frames, and where its controls start."""

    def __init__(self, models, model_id):
        view = next(
            models[m] for m in reached(models, [model_id]) if "frames" in models[m]["state"]
        )
        [numbers] = [buffer for buffer in view["buffers"] if buffer["path"] == ["numbers"]]
        self.controls = view["state"]["controls"]
        self.reads = view["state"]["reads"]
        self.start = [int(view["state"][control["name"]]) for control in self.controls]
        self._frames = view["state"]["frames"]
        self._numbers = np.frombuffer(base64.b64decode(numbers["data"]), "<f4")

    def labels(self, place):
        return {c["name"]: c["options"][at] for c, at in zip(self.controls, place, strict=True)}

    def frame(self, place):
        key = ",".join(
            str(at) for at, control in zip(place, self.controls, strict=True) if control["frame"]
        )
        return {name: self._unpacked(value) for name, value in self._frames[key].items()}

    def _unpacked(self, value):
        if not (isinstance(value, dict) and "shape" in value):
            return value
        if "levels" in value:
            return from_levels(value["levels"], value["shape"]).numpy()
        size = int(np.prod(value["shape"]))
        return self._numbers[value["at"] : value["at"] + size].reshape(value["shape"])


def stored_explorers(notebook):
    models = notebook.metadata.widgets[WIDGET_STATE]["state"]
    return [Stored(models, model_id) for model_id in views(notebook)]


class Live:
    """An explorer on the page of a client, with the controls that ipywidgets draws there."""

    def __init__(self, page, element, stored):
        self.page, self.element, self.stored = page, element, stored
        self.place = list(stored.start)

    def expect_stored(self):
        """Wait until the committed frame of this place is drawn, with its status line."""
        frame, labels = self.stored.frame(self.place), self.stored.labels(self.place)
        where = ", ".join(f"{name} {label}" for name, label in labels.items())
        eventually(lambda: compare(self.seen(), frame, labels, where))

    def seen(self):
        return json.loads(self.element.evaluate(READ))

    def move(self, nth, place, by):
        """Put the nth control to another place and wait for the picture to follow."""
        name = self.stored.controls[nth]["name"]
        control, before = self._control(nth), self.seen()["markup"]

        def follows():
            assert control.evaluate(POSITION) == place, f"{name} does not move by {by.__name__}"
            changed = self.seen()["markup"] != before  # a plain boolean: two pictures are too long
            assert changed, f"{name} moves by {by.__name__}, but its picture stays the same"

        by(control, self.place[nth], place, len(self.stored.controls[nth]["options"]))
        self.place[nth] = place
        eventually(follows)
        self.expect_stored()

    def _control(self, nth):
        shown = [c for c in self.stored.controls[:nth] if len(c["options"]) > 1]
        box = self.element.locator(".explorer-controls > *").nth(len(shown))
        return box.locator(".noUi-handle, select, input[type=checkbox]")

    def try_every_control(self):
        """Move each control by keyboard, then by mouse to its far end and back to its start."""
        # Out of sight it has no width yet, and would be drawn once more on the way.
        self.element.scroll_into_view_if_needed()
        for nth, control in enumerate(self.stored.controls):
            start, last = self.place[nth], len(control["options"]) - 1
            if last == 0:
                continue  # no choice, so it is not shown
            step = start + 1 if start < last else start - 1
            self.move(nth, step, keyboard)
            self.move(nth, 0 if step > last / 2 else last, mouse)
            if self.place[nth] != start:
                self.move(nth, start, mouse)

    def try_own(self):
        """Type what the explorer reads, in letters that are shortcuts too, and clear it again."""
        cells = self.page.locator(".jp-Cell")
        count = cells.count()
        field, picture = self.element.locator(".own input"), self.element.locator("[data-picture]")
        if self.stored.reads is None:
            expect(field).to_be_hidden()
            return
        text, shown = OWN[self.stored.reads["kind"]]
        expect(picture).not_to_contain_text(shown)
        field.click()
        self.page.keyboard.type(text)
        expect(field).to_have_value(text)
        expect(picture).to_contain_text(shown)
        if self.stored.reads["kind"].startswith("sentence"):
            expect(self.element.locator(".notes")).to_contain_text("does not know “add”")
        assert cells.count() == count, "a letter reached the notebook"
        self.element.get_by_role("button", name="clear").click()
        self.expect_stored()

    def try_reading(self):
        """Read the picture's cells by the arrow keys, which the client would like to have too."""
        several = [name for name, cells in self.seen()["matrices"] if len(cells) > 1]
        if not several:
            return  # a drawing has no cells
        picture, readout = self.element.locator("[data-picture]"), self.element.locator(".readout")
        middle, wide = picture.evaluate(
            """({matrices}, wanted) => {
              const {left, top, size, high, columns} = matrices.find(({name}) => name === wanted);
              return [{x: left + size / 2, y: top + high / 2}, columns.length > 1];
            }""",
            several[0],
        )
        picture.locator(f"svg[data-name='{several[0]}']").hover(position=middle)
        # A pointer at rest on the picture would point at another cell when the page moves.
        self.page.mouse.move(0, 0)
        picture.locator("[data-cursor]").focus()
        # Bars, one above another, are a single column: there is nothing to the right of a cell.
        for key in ("ArrowRight", "ArrowLeft") if wide else ("ArrowDown", "ArrowUp"):
            said = readout.inner_text()
            self.page.keyboard.press(key)
            expect(readout).not_to_have_text(said)
        expect(picture.locator("[data-cursor]")).to_be_focused()


def keyboard(control, here, there, _):
    control.focus()
    kind = control.evaluate("c => c.type ?? 'slider'")
    forwards, back = ("ArrowRight", "ArrowLeft") if kind == "slider" else ("ArrowDown", "ArrowUp")
    control.page.keyboard.press(
        "Space" if kind == "checkbox" else forwards if there > here else back
    )


def mouse(control, _, there, options):
    kind = control.evaluate("c => c.type ?? 'slider'")
    if kind == "checkbox":
        control.click()
    elif kind == "slider":
        pointer = control.page.mouse
        control.scroll_into_view_if_needed()
        handle = control.bounding_box()
        track = control.locator("xpath=ancestor::*[contains(@class, 'noUi-base')]").bounding_box()
        x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
        pointer.move(x, y)
        pointer.down()
        pointer.move(track["x"] + track["width"] * there / (options - 1), y, steps=5)
        pointer.up()
    else:
        control.select_option(index=there)


def compare(seen, frame, labels, where):
    """What is seen with a committed frame: the sizes, the message or every number of every matrix.

    The name of a matrix is the tensor's, followed by the indices of its slice: "right 2".
    """
    for name in {"d_model", "n_heads"} & labels.keys():
        assert re.search(rf"\b{name} {labels[name]}\b", seen["status"]), (
            f"{where}: {seen['status']}"
        )
    if "error" in frame:
        assert seen["error"] == f"ValueError {frame['error']}", where
        return
    assert seen["error"] is None, f"{where}: {seen['error']}"
    if "alt" in frame:  # a drawing, whose numbers tests/unit/drawings reads back
        assert seen["status"] == frame["alt"] and "<svg" in seen["markup"], where
        return
    assert seen["matrices"], f"{where}: nothing is drawn"
    if frame.get("setting", labels).items() - labels.items():
        return  # the page computes what it shows, and holds the frame of another setting
    for name, cells in seen["matrices"]:
        tensor, *indices = re.findall(r"\w+", name)
        assert tensor in frame, f"{where}: {name} is still drawn"
        expected = frame[tensor][tuple(int(i) for i in indices)]
        assert len(cells) == expected.size, f"{where}: {name} has {len(cells)} cells"
        drawn = np.array(cells, float).reshape(expected.shape)
        np.testing.assert_allclose(
            drawn, expected, rtol=1e-5, atol=1e-5, err_msg=f"{where}: matrix {name}"
        )


def eventually(check):
    """Repeat a check until it holds; what it says at the end is what is reported."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.fixture
def jupyter(servers, program):
    """A running JupyterLab or Notebook 7, whichever the test takes as its `program`."""
    return servers(program)


@pytest.fixture
def opened(jupyter, browser):
    """A context manager: opens a notebook of the server, yields the page and its explorers.

    When something fails in it, it prints what the browser and the server had to say.
    """

    @contextmanager
    def open_notebook(name):
        notebook = nbformat.read(jupyter.book / name, as_version=4)
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        page, said = context.new_page(), []
        page.set_default_timeout(PATIENCE * 1000)
        page.on("pageerror", lambda error: said.append(f"uncaught error: {error}"))
        page.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        try:
            page.goto(jupyter.address(name))
            page.wait_for_function(KERNEL_WAITS)
            elements = page.locator(".jp-OutputArea-output .explorer")
            lives = [
                Live(page, elements.nth(nth), stored)
                for nth, stored in enumerate(stored_explorers(notebook))
            ]
            yield page, lives
        except BaseException:
            print("The browser's console:", *said, sep="\n")
            print("Errors of cells:", *page.locator(ERRORS).all_inner_texts(), sep="\n")
            print("The server's log:", *jupyter.log.splitlines()[-30:], sep="\n")
            raise
        finally:
            context.close()
            for kernel in eventually(jupyter.kernels):
                jupyter.stop_kernel(kernel["id"])

    return open_notebook


def choose(page, menu, item):
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def stop_kernel(page, jupyter):
    choose(page, "Kernel", "Shut Down Kernel")

    def none_left():
        assert jupyter.kernels() == []

    eventually(none_left)


def kinds(stems):
    """What the explorers of chapters are made of: widgets, what they read, numbers or a drawing."""
    found = set()
    for stem in stems:
        notebook = nbformat.read(BOOK / f"{stem}.ipynb", as_version=4)
        models = notebook.metadata.widgets[WIDGET_STATE]["state"]
        found |= {models[m]["model_name"] for m in reached(models, views(notebook))}
        for explorer in stored_explorers(notebook):
            frame = explorer.frame(explorer.start)
            found |= {("reads", (explorer.reads or {}).get("kind")), ("drawing", "alt" in frame)}
    return found


def test_the_chapters_that_are_tried_have_every_kind_of_explorer():
    assert kinds(LAB) == kinds(path.stem for path in chapters())


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("program", "stem"), LIVE)
def test_sliders_are_live_before_and_after_the_kernel_stops(jupyter, opened, stem):
    with opened(f"{stem}.ipynb") as (page, explorers):
        choose(page, "Run", "Run All Cells")
        page.wait_for_function(ALL_RAN, timeout=RUN * 1000)
        expect(page.locator(".explorer [role=status]")).to_have_count(len(explorers))
        for explorer in explorers:
            explorer.expect_stored()
            explorer.try_every_control()
            explorer.try_reading()
            explorer.try_own()
        stop_kernel(page, jupyter)
        for explorer in explorers:
            explorer.try_every_control()
            explorer.try_own()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("program", "stem"), SAVED)
def test_a_saved_notebook_shows_what_it_stores(jupyter, opened, stem):
    """Without running a cell: the picture where the reader has not trusted the notebook, else live.

    Both clients start a kernel with a notebook, and ask it for the widgets it has: here, for none.
    """
    path = jupyter.book / f"{stem}.ipynb"
    with opened(path.name) as (page, explorers):
        expect(page.locator(".jp-OutputArea-output img")).not_to_have_count(0)
        expect(page.locator(".explorer")).to_have_count(0)
        stop_kernel(page, jupyter)

    NotebookNotary(data_dir=str(jupyter.folder / "data")).sign(nbformat.read(path, as_version=4))
    with opened(path.name) as (page, explorers):
        expect(page.locator(".explorer [role=status]")).to_have_count(len(explorers))
        stop_kernel(page, jupyter)
        for explorer in explorers:
            explorer.expect_stored()
            explorer.try_every_control()
