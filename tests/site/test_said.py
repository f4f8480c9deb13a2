"""What every explorer says of every cell: torch's numbers, in the words that `said` holds.

Each explorer is shown at three places of its controls or more, and every cell is pointed at. The
numbers are compared with the frame that torch computed, and the outline with the cell. The words
are compared with a text in the folder `said`, where # stands for the cell's own number: its status
at every place in one line, and in another what is said of the first cell of each kind; of the two
explorers in `WHOLE` all words, labels and highlights. After a change that is wanted delete the
explorer's text and run this test: it writes the text again, and fails once. Read the diff.
"""

import json
import re
from decimal import ROUND_HALF_UP, Decimal
from difflib import unified_diff
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

import attention.explore
from attention.explore.modules import HERE, bundle
from tests.site.conftest import explorer_cells, stored_views
from tests.site.in_page import text_of
from tests.site.test_explorers import Frames

SAID = Path(__file__).parent / "said"
MINUS = "\N{MINUS SIGN}"
# In two digits or more, or as a percentage; not "2.42 million", which the frame has in millions.
OTHER_NUMBER = re.compile(rf"({MINUS}?)\b(\d+\.\d\d+(?! \w*illion| thousand)|\d+\.\d(?= %))( %)?")
# All is kept of what these say: between them they draw each kind of mark, curve, arc and button.
WHOLE = ("buckets_explorer", "who_and_whom_explorer")
# What a view is given as JSON.
STATE = ("title", "controls", "frames", "models", "reads")
# Places of the controls at which a word turns that the three places of every explorer do not show.
MORE_PLACES = {
    # Two mistakes that lose fewer together than one alone, as many, and more.
    "break_it_explorer": [[1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 1, 0]],
    "cache_explorer": [[1, 2, 1]],  # the step before the model's first wrong sign
    # The two wirings that solve it, a tie, and the best of one layer.
    "wire_two_heads_explorer": [
        [0, 2, 1, 0, 0, 2, 0],
        [0, 0, 0, 1, 1, 1, 0],
        [0, 0, 1, 0, 0, 2, 1],
        [1, 2, 1, 0, 0, 0, 0],
    ],
}
# How a cell is drawn whose colour is not that of its number; t0 to t7 are the tokens' colours.
MARKS = {"": " ", "plus": " ", "minus": " ", "struck": "/", "unread": ".", "plain": "o"}

# Shows a view at each of some places of its controls, and what it says there. As one string:
# Playwright would look at every value of a nested answer on its way.
SAY = """
async ({code, style, state, buffers, places}) => {
  document.body.innerHTML = "<style></style><div></div>";
  const [css, el] = document.body.children;
  css.textContent = style;
  el.style.width = "720px";
  const view = await import(URL.createObjectURL(new Blob([code], {type: "text/javascript"})));
  for (const [name, text] of Object.entries(buffers)) {
    state[name] = new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
  }
  Object.assign(state, places[0]);
  const heard = {};
  const model = {get: name => state[name], on: (event, f) => heard[event] = f, off() {}};
  const end = view.default.render({model, el});
  const [picture, readout] = ["[data-picture]", ".readout"].map(each => el.querySelector(each));
  const all = (look, inside = picture) => [...inside.querySelectorAll(look)];
  const round = (...numbers) => numbers.map(Math.round).join(" ");

  // A label of a matrix with the row or the column that it stands at, any other as it is.
  const label = (text, matrix) => {
    if (!matrix) return text.textContent;
    const turned = text.getAttribute("transform")?.match(/[\\d.-]+/)[0];
    const [x, y] = [turned ?? text.getAttribute("x"), text.getAttribute("y")];
    const place = text.matches(".row, .value")
      ? `r${Math.floor(y / matrix.high)}`
      : `c${Math.floor(x / matrix.size)}`;
    return `${place} ${text.textContent}`;
  };

  // What is marked: in a matrix the cells within, elsewhere the pixels.
  const marked = (shape, matrix) => {
    const {size = 1, high = 1} = matrix ?? {};
    const parts = matrix ? shape.getAttribute("d").split(/(?=M)/) : [""];
    return parts.map(part => {
      const one = shape.cloneNode();
      if (part) one.setAttribute("d", part);
      shape.after(one);
      const {x, y, width, height} = one.getBBox();
      one.remove();
      const end = round((y + height) / high, (x + width) / size);
      if (matrix || !shape.matches("path")) {
        return `${shape.classList} ${round(y / high, x / size)} to ${end}`;
      }
      const length = shape.getTotalLength();
      // A curve and its mirror image have one box and one length.
      const heights = [0, length / 2, length].map(at => shape.getPointAtLength(at).y);
      const through = shape.matches(".loss, .then, .now") ? ` through ${round(...heights)}` : "";
      return `${shape.classList} ${round(y, x)} to ${end} long ${round(length)}${through}`;
    });
  };

  const drawn = svg => {
    const matrix = picture.matrices.find(({name}) => name === svg.dataset.name);
    const looks = matrix
      ? ".hand, .now, .band"
      : svg.matches(".sentence")
      ? "none"
      : ".hand, .now, .band, .loss, .then, .wrong, .here, .found, rect, circle";
    return [
      ...svg.ariaLabel ? [`image: ${svg.ariaLabel}`] : [],
      all("text:not(.digits)", svg).map(text => label(text, matrix)).join(" | "),
      ...all(looks, svg).flatMap(shape => shape.hasAttribute("d") || !matrix
        ? marked(shape, matrix) : []),
      ...all("[data-to]", svg).map(({dataset: {head, to}}) => `arc of ${head} to ${to}`),
    ];
  };

  const read = each => each.matches("svg")
    ? drawn(each)
    : each.matches("tr")
    ? all("th, td", each).map(cell => cell.textContent).join(" | ")
    : each.textContent;
  const lines = () => [
    ...[".status", ".readout"].map(each => el.querySelector(each).textContent),
    ...all("p:not(.switches), figcaption, button, tr, svg").flatMap(read),
  ];

  const kindsOf = (svg, {size, high, tensor: {shape: [height, width]}}) => {
    const kinds = Array.from({length: height}, () => Array(width).fill(""));
    const paths = [...all(".cells", svg), ...all(".strike", svg)];
    for (const path of paths) {
      const isStrike = path.matches(".strike");
      for (const [, x, y] of path.getAttribute("d").matchAll(/M([\\d.-]+) ([\\d.-]+)[hl]/g)) {
        const [r, c] = [isStrike ? (+y + 1) / high - 1 : y / high, x / size].map(Math.round);
        kinds[r][c] = isStrike ? "struck" : path.classList[1];
      }
    }
    return kinds;
  };

  const press = key => picture.dispatchEvent(new KeyboardEvent("keydown", {key}));

  // The words of an element's nearest label at each end of it.
  const ends = path => {
    const svg = path.closest("svg");
    return [0, path.getTotalLength()].map(at => {
      const {x, y} = path.getPointAtLength(at);
      const far = text => Math.hypot(text.getAttribute("x") - x, text.getAttribute("y") - 4 - y);
      return all("text", svg).reduce((a, b) => far(a) <= far(b) ? a : b).textContent;
    });
  };

  const outlined = () => picture.matrices.flatMap(({name, size, high, tensor}) => {
    const d = picture.querySelector(`[data-name="${name}"] .outline`).getAttribute("d") ?? "";
    return [...d.matchAll(/M([\\d.-]+) ([\\d.-]+)h([\\d.-]+)v([\\d.-]+)/g)].map(([, x, y, w, h]) =>
      ({name, r: y / high, c: x / size, wide: (+w + 1) / size, high: (+h + 1) / high}));
  });

  const pointedAt = (svg, {left, top, size, high}, r, c) => {
    const box = svg.getBoundingClientRect();
    const clientX = box.left + left + (c + 0.5) * size;
    const clientY = box.top + top + (r + 0.5) * high;
    svg.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX, clientY}));
    return {
      said: readout.textContent,
      outlined: outlined(),
      edges: all(".on[data-weight]").map(edge => [+edge.dataset.weight, ...ends(edge)]),
      words: all(".on[data-word]").map(word => +word.dataset.word),
    };
  };

  const said = places.map(place => {
    Object.assign(state, place);
    for (const react of new Set(Object.values(heard))) react();
    const shown = {lines: lines(), pressed: []};
    if (picture.querySelector("[data-act]")) {
      picture.querySelector("[data-act]").click();
      shown.pressed = lines();
      picture.querySelector("[data-act]").click();
    }
    const total = picture.matrices.reduce((sum, {tensor}) => sum + tensor.data.length, 0);
    let every = Math.ceil(total / MOST);
    while (every % 2 === 0 || every % 3 === 0) every++; // so that it visits every column
    const matrices = picture.matrices.map(matrix => {
      const {name, largest, tensor: {shape: [height, width]}} = matrix;
      const svg = picture.querySelector(`[data-name="${name}"]`);
      const kinds = kindsOf(svg, matrix);
      const cells = kinds.map((line, r) => line.map((_, c) =>
        (r * width + c) % every ? null : pointedAt(svg, matrix, r, c)));
      // The same by keyboard: down the first column, and along the last row.
      pointedAt(svg, matrix, 0, 0);
      const keys = [...Array(height - 1).fill("ArrowDown"), ...Array(width - 1).fill("ArrowRight")];
      const byKeys = keys.map(key => {
        press(key);
        return readout.textContent;
      });
      return {name, largest, kinds, cells, byKeys};
    });
    const words = all("[data-word]").map(word => {
      word.dispatchEvent(new PointerEvent("pointermove", {bubbles: true}));
      return readout.textContent;
    });
    return {...shown, matrices, words};
  });
  end();
  return JSON.stringify(said);
}
""".replace("MOST", "700")  # cells of a drawing; of a larger one as many, spread over all


@pytest.fixture(scope="module")
def blank(browser):
    """A page so high that a whole explorer is seen: what is not seen is drawn later."""
    page = browser.new_page(viewport={"width": 1000, "height": 6000})
    yield page
    page.close()


def spoken(value):
    """A number as a view may say it: in two digits, in three, as a percentage."""
    if value == -np.inf:
        return [MINUS + "∞"]

    def digits(size, places):
        # A tie is rounded up, as JavaScript does, and there is no "-0.00".
        text = str(Decimal(size).quantize(Decimal(10) ** -places, ROUND_HALF_UP))
        return MINUS + text if value < 0 and float(text) else text

    size = abs(float(value))
    return [digits(size, 3), digits(size, 2), digits(100 * size, 1) + " %"]


def template(cell, value):
    """What is said of a cell, with # instead of its number, and what is outlined beside it."""
    others = len(cell["outlined"]) - 1
    beside = f" (and {others} outlined)" if others else ""
    for text in spoken(value):
        found = re.sub(rf"(?<![\d.,{MINUS}]){re.escape(text)}(?![\d.,]\d)", "#", cell["said"])
        if found != cell["said"]:
            return found + beside
    return cell["said"] + beside


def come_from_torch(text, frame, r, c):
    """What else is said of a cell stands in the frame, in its column, in its row or by itself."""
    plain = [np.ravel(v) for v in frame.values() if isinstance(v, (int, float, list))]
    near = [v for v in plain if np.issubdtype(v.dtype, np.number)]
    tensors = [v for v in frame.values() if isinstance(v, np.ndarray)]
    near += [v[..., at].ravel() for v in tensors for at in {r, c} if at < v.shape[-1]]
    for sign, digits, unit in OTHER_NUMBER.findall(text):
        number = float(digits) * (-1 if sign else 1) / (100 if unit else 1)
        half = 0.5001 * 10.0 ** -len(digits.partition(".")[2]) / (100 if unit else 1)
        assert any(np.abs(v - number).min() <= half for v in near if v.size), f"{text}: {digits}"


def in_a_line(texts):
    """The texts of a row; of those that have as many words as the one before, what differs."""
    groups = [list(group) for _, group in groupby(map(str.split, texts), key=len)]
    return " || ".join(
        " ".join(
            each[0] if len(set(each)) == 1 else f"[{'|'.join(each)}]"
            for each in zip(*group, strict=True)
        )
        for group in groups
    )


def templates(matrix, tensors, frame):
    """What is said of each cell of a matrix, by its place; its numbers are torch's."""
    name, cells = matrix["name"], matrix["cells"]
    assert (len(cells), len(cells[0])) == tensors[name].shape
    texts = {}
    for r, line in enumerate(cells):
        for c, cell in enumerate(line):
            if cell:
                check(cell, matrix, r, c, tensors)
                texts[r, c] = template(cell, tensors[name][r, c])
                come_from_torch(texts[r, c], frame, r, c)
    walked = [line[0] for line in cells[1:]] + cells[-1][1:]
    for by_key, cell in zip(matrix["byKeys"], walked, strict=True):
        assert cell is None or by_key == cell["said"], name
    return texts


def words_of(shown, said, controls):
    """All that a view says at one place of its controls, as lines."""
    yield f"== {controls}"
    yield from filter(None, shown["lines"])
    for matrix, texts in zip(shown["matrices"], said, strict=True):
        yield f"-- {matrix['name']}, full colour at {matrix['largest']:.2f}"
        if any(kind not in ("", "plus", "minus") for line in matrix["kinds"] for kind in line):
            yield from ("".join(MARKS.get(k) or k[-1] for k in line) for line in matrix["kinds"])
        for r, line in groupby(texts, key=lambda place: place[0]):
            yield f"{r} {in_a_line([texts[place] for place in line])}"
    yield from shown["words"]
    if shown["pressed"]:
        yield "-- when its first button was pressed"
        yield from (line for line in shown["pressed"] if line and line not in shown["lines"])


def tensor_of(name, frame):
    """What a matrix is named after, "right 2" for the third of the tensor `right`, as rows."""
    of, *indices = name.split()
    tensor = frame[of][tuple(map(int, indices))]
    return np.atleast_2d(tensor) if len(indices) else tensor


def check(cell, matrix, r, c, tensors):
    """A cell is outlined where it stands, with the cells and the lines of the same number."""
    name = matrix["name"]
    value = tensors[name][r, c]
    here = f"{name}[{r}, {c}]: {cell}"
    outlined = [(each["name"], each["r"], each["c"]) for each in cell["outlined"]]
    assert (name, r, c) in outlined, here
    assert all(each["wide"] == each["high"] == 1 for each in cell["outlined"]), here
    for other, row, column in outlined:
        same = tensors[other].shape == tensors[name].shape and (row, column) == (r, c)
        assert same or abs(tensors[other][row, column] - value) < 1e-5, here
    if matrix["kinds"][r][c] in ("plus", "minus"):
        assert matrix["kinds"][r][c] == ("minus" if value < 0 else "plus"), here
    for weight, start, end in cell["edges"]:
        assert abs(weight - value) < 1e-5, here
        assert re.search(f'"{re.escape(start)}" .*"{re.escape(end)}" ', cell["said"]), here
    assert cell["words"] in ([], [r]), here


def view_class(name):
    return f"attention.explore.explorer.{name.removesuffix('_explorer').title()}View"


@pytest.fixture(scope="module")
def stored():
    """Every view that a page stores, by its class."""
    pages = {stem for stem, *_ in explorer_cells()}
    return {view._anywidget_id: view for stem in sorted(pages) for view in stored_views(stem)}


@pytest.mark.quick
@pytest.mark.parametrize("name", attention.explore.__all__)
def test_what_is_said_of_every_cell(blank, stored, name):
    view = stored.get(view_class(name)) or getattr(attention.explore, name)().view
    frames = Frames(view)
    sizes = [len(control["options"]) for control in view.controls]
    traits = [control["name"] for control in view.controls]
    first = [int(getattr(view, trait)) for trait in traits]
    # As it stands at first, and with every control moved by one, forwards and back.
    places = [[(at + by) % n for at, n in zip(first, sizes, strict=True)] for by in (0, 1, -1)]
    places += MORE_PLACES.get(name, [])
    # Controls that choose no frame stand where torch's frame was computed for them.
    for place in places:
        for trait, label in frames.at(place).get("setting", {}).items():
            nth = traits.index(trait)
            place[nth] = view.controls[nth]["options"].index(label)
    given = {
        "code": bundle(name.removesuffix("_explorer")),
        "style": view._css,
        "state": {trait: getattr(view, trait) for trait in STATE},
        "buffers": {trait: text_of(getattr(view, trait)) for trait in ("numbers", "weights")},
        "places": [dict(zip(traits, place, strict=True)) for place in places],
    }
    whole, statuses, first = [], [], {}
    for place, shown in zip(places, json.loads(blank.evaluate(SAY, given)), strict=True):
        frame = frames.at(place)
        tensors = {m["name"]: tensor_of(m["name"], frame) for m in shown["matrices"]}
        said = [templates(matrix, tensors, frame) for matrix in shown["matrices"]]
        controls = ", ".join(f"{trait} {label}" for trait, label in frames.labels(place).items())
        whole += [line.rstrip() for line in words_of(shown, said, controls)]
        statuses.append(shown["lines"][0])
        for matrix, texts in zip(shown["matrices"], said, strict=True):
            for (r, c), text in texts.items():
                kind = matrix["name"].split()[0], MARKS.get(matrix["kinds"][r][c])
                first.setdefault(kind, text)
        for text in shown["words"]:
            first.setdefault("a word of the text", text)
    now = whole if name in WHOLE else [in_a_line(statuses), " || ".join(first.values())]
    path = SAID / f"{name}.txt"
    if not path.exists():
        path.write_text("\n".join([*now, ""]), "utf-8")
        pytest.fail(f"{path.name} was missing and is written now: read it")
    kept = path.read_text("utf-8").splitlines()
    found = list(unified_diff(kept, now, path.name, "what is said now", lineterm="", n=0))
    assert not found, "\n".join(found[:20])


def test_chapters_store_the_code_that_is_tested(stored):
    assert len(stored) > 20
    for name in attention.explore.__all__:
        if view := stored.get(view_class(name)):
            stale = f"a chapter stores other code of {name}: `make refresh` renews it"
            assert view._esm == bundle(name.removesuffix("_explorer")), stale
            assert view._css == (HERE / "explorer.css").read_text("utf-8"), stale
