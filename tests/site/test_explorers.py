"""Every explorer of every page: its controls work, and what is drawn is what torch computes."""

import json
import re
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from attention import MultiHeadAttention
from attention.explore.modules import HERE
from attention.pretrained.maps import from_levels
from tests.site.conftest import ROOT, explorer_cells, stored_views

HOST = ROOT / "book" / "_ext" / "static_widgets" / "static" / "static_widgets"
FRAMES_COMPARED = 40  # of one explorer at most, spread over all
FULL_COLOUR = 0.62  # opacity of a cell that holds the largest number of its matrix
HALF_A_SHADE = FULL_COLOUR / 20 / 2 + 0.001  # twenty shades, three digits
SIZED = (
    "index",
    "02",
    "03",
    "04",
    "05",
    "06",
    "07",
)  # pages with sliders for d_model and for n_heads

# What one explorer shows: its markup and the colours that it resolves to.
PICTURE = """
widget => {
  const picture = widget.querySelector("[data-picture]");
  const shapes = [...picture.querySelectorAll("rect, path, circle, line")];
  return picture.innerHTML + shapes.map(shape => getComputedStyle(shape).fill).join();
}
"""

# Puts the controls of one explorer to each of the places in turn and reads what is drawn there.
# As one string: Playwright would look at every value of a nested answer on its way.
READ_FRAMES = """
(widget, places) => {
  const inputs = [...widget.querySelectorAll(".sw-control :is(input, select)")];
  const put = (input, place) => {
    const stands = input.type === "checkbox" ? +input.checked : input.selectedIndex ?? +input.value;
    if (stands === place) return;
    if (input.type === "checkbox") {
      input.click();
    } else if (input.type === "range") {
      input.value = place;
      input.dispatchEvent(new Event("input", {bubbles: true}));
      input.dispatchEvent(new Event("change", {bubbles: true}));
    } else {
      input.selectedIndex = place;
      input.dispatchEvent(new Event("change", {bubbles: true}));
    }
  };
  const picture = widget.querySelector("[data-picture]");
  const cells = (svg, {tensor, size, high}) => {
    const [height, width] = tensor.shape;
    const paths = [...svg.querySelectorAll("path.cells")];
    const bars = [...svg.querySelectorAll("rect")];
    const dots = [...svg.querySelectorAll("circle")];
    const lines = [...svg.querySelectorAll("text.digits, text.value")].map(
      text => text.textContent);
    return Array.from(tensor.data, (value, i) => {
      const [r, c] = [Math.floor(i / width), i % width];
      const middle = new DOMPoint((c + 0.5) * size, (r + 0.5) * high);
      const painted = bars[r] ?? paths.find(path => path.isPointInFill(middle));
      const slot = (lines[r] ?? "").length / width;
      return {
        value: String(value),
        place: [r, c],
        kind: painted?.classList[painted.classList.length - 1] ?? null,
        opacity: painted ? +painted.getAttribute("fill-opacity") : 0,
        bar: bars[r] ? +bars[r].getAttribute("width") : null,
        dot: dots[r] ? +dots[r].getAttribute("cx") : null,
        text: (lines[r] ?? "").slice(c * slot, (c + 1) * slot).trim(),
      };
    });
  };
  return JSON.stringify(places.map(place => {
    place.forEach((at, i) => put(inputs[i], at));
    return {
      status: widget.querySelector("[role=status]").textContent,
      error: picture.querySelector(".error")?.textContent.trim() ?? null,
      matrices: [...picture.querySelectorAll("svg[data-name]")].map(svg => {
        const matrix = picture.matrices.find(each => each.name === svg.dataset.name);
        return {name: matrix.name, largest: matrix.largest, cells: cells(svg, matrix)};
      }),
    };
  }));
}
"""

# The rules of these stylesheets that the page does not have. A rule may have lost to the page some
# of its selectors, so each is looked for by itself.
MISSING_RULES = """
texts => {
  const flat = (rules, within = "") => [...rules].flatMap(rule => rule.selectorText
    ? rule.selectorText.split(", ").map(each => `${within}${each} {${rule.style.cssText}}`)
    : flat(rule.cssRules ?? [], `${within}${rule.conditionText}: `));
  const there = new Set([...document.styleSheets].flatMap(sheet => flat(sheet.cssRules)));
  return texts.flatMap(text => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    return flat(sheet.cssRules);
  }).filter(rule => !there.has(rule));
}
"""
TWO_FRAMES = """
() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
"""


@pytest.fixture(scope="module")
def mounted(visit, site, explorer_cell):
    stem, nth, _ = explorer_cell
    # A window so high that the whole explorer is seen: what is not seen is drawn later.
    with visit(f"{site}/{stem}.html", has_touch=True, height=6000) as v:
        assert v.mount_all() > nth, "the page shows fewer explorers than the notebook holds"
        widget = v.page.locator(".static-widget").nth(nth)
        widget.scroll_into_view_if_needed()
        widget.evaluate(TWO_FRAMES)  # it is told that it is seen, and draws from now on at once
        yield v, widget, [int(position(control)) for control in controls_of(widget)]


@pytest.fixture
def shown(mounted):
    """The page of one explorer and the explorer's element, with its controls where they start."""
    v, widget, start = mounted
    put(widget, start)
    for button in widget.locator("[data-act='start again']").all():
        # A test before this one may have painted. By keyboard, as who goes on by keyboard does.
        button.press("Enter")
    yield v, widget
    v.assert_no_trouble()


def put(widget, *places):
    """Put the controls to each of the places in turn; returns what is drawn at each."""
    return json.loads(widget.evaluate(READ_FRAMES, places))


def controls_of(widget):
    return widget.locator(".sw-control").locator("input, select").all()


def name_of(widget, control):
    return widget.locator(f"label[for='{control.get_attribute('id')}']").inner_text().strip()


class Frames:
    """The frames of an explorer's view, unpacked to arrays."""

    def __init__(self, view):
        self.controls = view.controls
        self._frames = view.frames
        self._numbers = np.frombuffer(view.numbers, "<f4")

    def places(self):
        """Where the controls can stand, as indices: all places, or a sample with both ends.

        Where the page computes what it shows, those for which frames are stored.
        """
        if any("setting" in frame for frame in self._frames.values()):
            return [self._stored_for(key) for key in self._frames]
        sizes = [len(control["options"]) for control in self.controls]
        places = [tuple(map(int, place)) for place in np.ndindex(*sizes)]
        step = -(-len(places) // FRAMES_COMPARED)
        # A step that shares no factor with the sizes visits every position of every control.
        while step > 1 and any(np.gcd(step, size) > 1 for size in sizes):
            step += 1
        return sorted({*places[::step], places[0], places[-1]})

    def at(self, place):
        key = ",".join(
            str(at) for at, control in zip(place, self.controls, strict=True) if control["frame"]
        )
        return {name: self._unpacked(value) for name, value in self._frames[key].items()}

    def _stored_for(self, key):
        chosen, setting = iter(key.split(",")), self._frames[key].get("setting")
        # A pair that the mathematics forbids is refused wherever the other controls stand.
        return tuple(
            int(next(chosen))
            if c["frame"]
            else c["options"].index(setting[c["name"]])
            if setting
            else 0
            for c in self.controls
        )

    def _unpacked(self, value):
        if not (isinstance(value, dict) and "shape" in value):
            return value
        if "levels" in value:
            return from_levels(value["levels"], value["shape"]).numpy()
        size = int(np.prod(value["shape"]))
        return self._numbers[value["at"] : value["at"] + size].reshape(value["shape"])

    def shown(self, place):
        """The part of a place that is a choice: a control with one option is not shown."""
        return [
            at for at, control in zip(place, self.controls, strict=True) if control["options"][1:]
        ]

    def labels(self, place):
        return {c["name"]: c["options"][at] for c, at in zip(self.controls, place, strict=True)}


def test_every_figure_has_a_name_of_its_own(html_folder):
    pages = "".join(path.read_text("utf-8") for path in html_folder.glob("*.html"))
    tags = re.findall(r'<div class="static-widget" [^>]*>', pages)
    titles = [re.search(r'data-title="([^"]+)"', tag)[1] for tag in tags]
    first = [title for title, tag in zip(titles, tags, strict=True) if ' id="' in tag]
    assert len(set(first)) == len(first) >= 20
    assert set(titles) == set(first), "the others are shown a second time"


def test_every_control_has_a_name(shown):
    _, widget = shown
    names = [name_of(widget, control) for control in controls_of(widget)]
    assert names and all(names) and len(set(names)) == len(names), names


@pytest.mark.quick
def test_a_page_has_the_rules_of_its_controls_and_views(visit, site):
    styles = [HOST / "host.css", HERE / "explorer.css"]
    with visit(f"{site}/index.html") as v:
        assert v.mount_all()
        missing = v.page.evaluate(MISSING_RULES, [path.read_text("utf-8") for path in styles])
    assert missing == [], "\n".join(missing)


@pytest.mark.one_in(2, first=0)  # and the others by mouse
@pytest.mark.quick
def test_every_control_changes_the_picture_by_keyboard(shown):
    v, widget = shown
    for control in controls_of(widget):
        control.focus()
        for step in (1, -1):  # away from where it stands, and back
            with expect_change(widget, control, "keyboard"):
                v.page.keyboard.press(key(control, step))
        assert control.evaluate("control => control === document.activeElement"), (
            "the focus is lost"
        )


@pytest.mark.one_in(2, first=1)
def test_every_control_changes_the_picture_by_mouse(shown, mounted):
    v, widget = shown
    for control in controls_of(widget):
        control.scroll_into_view_if_needed()
        for _ in range(2):
            with expect_change(widget, control, "mouse"):
                use_by_mouse(v.page, control)
        put(widget, mounted[2])


@contextmanager
def expect_change(widget, control, means):
    picture, place = widget.evaluate(PICTURE), position(control)
    yield
    name = name_of(widget, control)
    assert position(control) != place, f"{name} does not move by {means}"
    # A plain boolean: a difference of two pictures is too long to print.
    changed = widget.evaluate(PICTURE) != picture
    assert changed, f"{name} moves by {means} from {place}, but its picture stays the same"


def position(control):
    return control.evaluate("c => c.type === 'checkbox' ? c.checked : c.selectedIndex ?? +c.value")


def key(control, step):
    """The key that moves a control: for step 1 forwards unless it stands at its end, else back."""
    kind, at_end = control.evaluate(
        "c => [c.type, c.type === 'range' ? c.value === c.max : c.selectedIndex === c.length - 1]"
    )
    if kind == "checkbox":
        return "Space"
    forwards, back = ("ArrowRight", "ArrowLeft") if kind == "range" else ("ArrowDown", "ArrowUp")
    return back if at_end or step < 0 else forwards


def use_by_mouse(page, control):
    """Drag a slider to its farther end, choose another option, or click."""
    kind = control.evaluate("c => c.type")
    if kind == "range":
        value, low, high = control.evaluate("c => [+c.value, +c.min, +c.max]")
        box = control.bounding_box()
        part = (value - low) / (high - low)
        thumb, y = 8, box["y"] + box["height"] / 2
        here = box["x"] + thumb + part * (box["width"] - 2 * thumb)
        there = box["x"] + (1 if part > 0.5 else box["width"] - 1)
        page.mouse.move(here, y)
        page.mouse.down()
        page.mouse.move((here + there) / 2, y)
        page.mouse.move(there, y)
        page.mouse.up()
    elif kind == "checkbox":
        control.click()
    else:
        index, length = control.evaluate("c => [c.selectedIndex, c.length]")
        control.select_option(index=(index + 1) % length)


@pytest.mark.one_in(4, first=1)  # one page for the tests of an explorer, in their order
def test_cells_can_be_read_by_mouse_touch_and_keyboard(shown, explorer_cell):
    v, widget = shown
    readout, picture = widget.locator(".readout"), widget.locator("[data-picture]")
    if "steps_explorer(" in explorer_cell[2]:  # made of drawings, which have no cells
        assert readout.inner_text() == "" and not widget.locator("summary").is_visible()
        assert widget.get_by_role("application").count() == 0
        return
    name, here, there = picture.evaluate(
        """({matrices}) => {
             const several = matrices.find(({tensor}) => tensor.data.length > 1);
             const {name, tensor, left, top, size, high} = several;
             return [name, ...[0, 1].map(cell => {
               const [r, c] = tensor.shape[1] > 1 ? [0, cell] : [cell, 0];
               return {x: left + (c + 0.5) * size, y: top + (r + 0.5) * high};
             })];
           }"""
    )
    matrix = picture.locator(f"svg[data-name='{name}']")
    said = [readout.inner_text()]
    matrix.hover(position=here)
    said.append(readout.inner_text())
    matrix.tap(position=there)
    said.append(readout.inner_text())
    assert len(set(said)) == 3, f"pointing at a cell and tapping another one say: {said}"
    picture.locator("[data-cursor]").focus()
    for arrow in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        v.page.keyboard.press(arrow)
        said.append(readout.inner_text())
    assert len(set(said[2:])) > 1, "the arrow keys do not read other cells"


@pytest.mark.one_in(4, first=1)  # one page for the tests of an explorer, in their order
def test_a_screen_reader_hands_the_arrow_keys_to_the_picture(shown, explorer_cell):
    """In an application it does; the rest of the picture stays text that it reads by itself."""
    _, widget = shown
    title = widget.get_attribute("data-title")
    figure = widget.get_attribute("aria-label")
    assert widget.get_attribute("role") == "group" and figure == f"Interactive figure: {title}"
    if "steps_explorer(" in explorer_cell[2]:
        return  # made of drawings, which have no cells
    picture, cursor = widget.locator("[data-picture]"), widget.get_by_role("application")
    assert cursor.count() == 1 and cursor.get_attribute("aria-label").startswith(title)
    assert cursor.inner_text() == "" and picture.get_attribute("role") == "group"
    cursor.press("ArrowRight")
    assert cursor.evaluate("cursor => cursor === document.activeElement")
    assert "reading" in widget.locator(".readout").get_attribute("class")


@pytest.mark.one_in(4, first=1)  # one page for the tests of an explorer, in their order
def test_tables_hold_the_same_numbers(shown, explorer_cell):
    _, widget = shown
    if "steps_explorer(" in explorer_cell[2]:
        return  # made of drawings: no tables
    widget.locator("summary").click()
    drawn = put(widget, [])[0]["matrices"]
    tables = widget.evaluate(
        """widget => [...widget.querySelectorAll("details table")].map(table => [
             table.caption.textContent,
             [...table.tBodies[0].querySelectorAll("td")].map(cell => cell.textContent)])"""
    )
    widget.locator("summary").click()
    values = {m["name"]: [float(cell["value"]) for cell in m["cells"]] for m in drawn}
    assert sorted(name for name, _ in tables) == sorted(values)
    for name, texts in tables:
        numbers = [float(text.replace("\N{MINUS SIGN}", "-").replace("∞", "inf")) for text in texts]
        np.testing.assert_allclose(numbers, values[name], atol=0.00501, err_msg=name)


def test_drawn_is_what_torch_computes(shown, explorer_cell):
    """The chapter stores what torch computes: tests/clients/test_colab.py runs it again."""
    _, widget = shown
    stem, nth, source = explorer_cell
    if "steps_explorer(" in source:
        return  # made of drawings, which tests/unit/drawings reads back
    frames = Frames(stored_views(stem)[nth])
    places = frames.places()
    put_to = map(frames.shown, places)
    for place, seen in zip(places, put(widget, *put_to), strict=True):
        labels, frame = frames.labels(place), frames.at(place)
        where = ", ".join(f"{name} {label}" for name, label in labels.items())
        for name in ("d_model", "n_heads"):
            if name in labels:
                assert f"{name} {labels[name]}" in seen["status"], f"{where}: {seen['status']}"
        if "d_model" in labels and "n_heads" in labels:
            d_model, n_heads = int(labels["d_model"]), int(labels["n_heads"])
            refusal = message_of(d_model, n_heads)
            if refusal:
                assert seen["error"] == f"ValueError {refusal}", where
            elif "error" not in frame:  # a pair may be allowed and have no stored model
                assert f"d_key {d_model // n_heads}" in seen["status"], f"{where}: {seen['status']}"
        assert (seen["error"] is None) == ("error" not in frame), f"{where}: {seen['error']}"
        if "error" in frame:
            assert seen["error"] == f"ValueError {frame['error']}", where
            assert not seen["matrices"], f"{where}: a picture beside the error"
        else:
            assert seen["matrices"], f"{where}: nothing is drawn"
            for matrix in seen["matrices"]:
                compare(matrix, frame, where)


def message_of(d_model, n_heads):
    try:
        with torch.device("meta"):  # chapter 14 has sizes of gigabytes
            MultiHeadAttention(d_model, n_heads)
    except ValueError as error:
        return str(error)
    return None


def compare(matrix, frame, where):
    """Every drawn cell with the tensor that its matrix is named after, and with its own look.

    The name is the tensor's, followed by the indices of the slice that is drawn: "right 2".
    """
    where = f"{where}: matrix {matrix['name']!r}"
    name, *indices = re.findall(r"\w+", matrix["name"])
    assert isinstance(frame.get(name), np.ndarray), f"{where}: the frame has no tensor {name}"
    expected = frame[name][tuple(int(i) for i in indices)]
    cells = matrix["cells"]
    assert len(cells) == expected.size, f"{where} has {len(cells)} cells for {expected.shape}"
    drawn = np.full(expected.shape, np.nan)
    for cell in cells:
        drawn[tuple(cell["place"])] = float(cell["value"])
    np.testing.assert_allclose(drawn, expected, rtol=1e-5, atol=1e-6, err_msg=where)

    are_bars = any(cell["bar"] is not None for cell in cells)
    are_dots = all(cell["dot"] is not None for cell in cells)
    for cell in cells:
        if cell["kind"] not in ("plus", "minus", None):
            continue
        number = float(cell["value"])
        message = f"{where}: {number} is drawn as {cell}"
        assert cell["kind"] in ("minus" if number < 0 else "plus", None), message
        share = min(1.0, abs(number) / matrix["largest"]) if matrix["largest"] else 0.0
        if not (are_bars or are_dots) and np.isfinite(number):  # a forbidden score is struck out
            assert abs(cell["opacity"] - FULL_COLOUR * share) < HALF_A_SHADE, message
        digits = cell["text"].replace("\N{MINUS SIGN}", "-")
        if re.fullmatch(r"-?\d*\.?\d+", digits):
            decimals = len(digits.partition(".")[2])
            assert abs(float(digits) - number) <= 0.5001 * 10**-decimals, message
    if are_bars:
        # As long as the number says, a pixel at least and no longer than the longest allowed.
        shares = [min(float(cell["value"]), matrix["largest"]) for cell in cells]
        longest = max(cell["bar"] for cell in cells)
        for cell, share in zip(cells, shares, strict=True):
            assert abs(cell["bar"] - max(1, longest * share / max(shares))) < 0.2, where
    if are_dots:  # on a scale of powers, where steps are in proportion to the logarithms'
        powers = np.log([float(cell["value"]) for cell in cells])
        places = np.array([cell["dot"] for cell in cells])
        scale = np.polyfit(powers, places, 1)
        np.testing.assert_allclose(places, np.polyval(scale, powers), atol=0.2, err_msg=where)
        assert scale[0] > 0, where


@pytest.mark.parametrize("start", SIZED)
def test_sizes_can_be_chosen_and_refused(start):
    """A page has sliders for d_model and n_heads, and they reach a pair that is refused."""
    [stem] = {stem for stem, *_ in explorer_cells() if stem.startswith(start)}
    for view in stored_views(stem):
        frames = Frames(view)
        labels = [frames.labels(place) for place in frames.places()]
        if any(int(at.get("d_model", 0)) % int(at.get("n_heads", 1)) for at in labels):
            return
    pytest.fail("none of its explorers has both sliders and a pair that is refused")
