"""The map of Part I: its pieces have the shapes of the tensors, and lead to their chapters."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import pytest

from attention.drawings import module_map
from attention.drawings.drawing import NARROW, WIDE
from attention.drawings.module_map import UNIT
from attention.example import running_example

SVG = "{http://www.w3.org/2000/svg}"
TEN = ["scores"] * 2 + ["weights"] * 4 + ["heads", "merged"] + ["Q, K, V"] * 2
NAMES = ["words", "X", "Q, K, V", "heads", "scores", "weights"]
NAMES += ["sums", "merged", "output", "row", "answers"]
BUILT = dict(zip(NAMES, (1, 1, 2, 3, 4, 4, 6, 6, 6, 7, 7), strict=True))


@pytest.fixture(params=["wide", "narrow"])
def width(request):
    return request.param


def links(drawing, width):
    """The links of one drawing by what they are called, each with the group around it."""
    root = ET.fromstring(getattr(drawing, width))
    around = {child: parent for parent in root.iter() for child in parent}
    return {a.get("aria-label") or called(a): (a, around[a]) for a in root.iter(f"{SVG}a")}


def called(link):
    """The name of a piece and its chapter, which are among the words of its link."""
    name = next(text for text in texts(link) if text in NAMES)
    return f"{name}, {texts(link)[-1].rstrip(',')}"


def texts(element):
    return [text.text for text in element.iter(f"{SVG}text")]


def own_shapes():
    """The tensors on the way through one sentence, computed line by line."""
    example = running_example()
    x, attention = example.x[1], example.attention
    q, k, v = (layer(x) for layer in (attention.w_q, attention.w_k, attention.w_v))
    heads = [q[:, :4], q[:, 4:]]
    scores = [q_r @ k_r.T / math.sqrt(4) for q_r, k_r in zip(heads, k.split(4, -1), strict=True)]
    weights = [s.softmax(dim=-1) for s in scores]
    sums = [a @ v_r for a, v_r in zip(weights, v.split(4, -1), strict=True)]
    merged = sums[0].new_zeros(6, 8)
    merged[:, :4], merged[:, 4:] = sums
    output = attention.w_o(merged)
    made = {"X": [x], "Q, K, V": [q, k, v], "heads": heads, "scores": scores, "weights": weights}
    made |= {"sums": sums, "merged": [merged], "output": [output], "row": [output[2:3]]}
    return {name: [tuple(one.shape) for one in tensors] for name, tensors in made.items()}


def test_every_box_has_the_shape_of_its_tensor(width):
    drawn = links(module_map(), width)
    for name, shapes in own_shapes().items():
        link, _ = drawn[f"{name}, chapter {BUILT[name]}"]
        boxes = [r for r in link.iter(f"{SVG}rect") if "stroke" in r.get("class").split()]
        cells = [(float(b.get("height")) / UNIT, float(b.get("width")) / UNIT) for b in boxes]
        assert cells == shapes, name
        copies = [len(shapes)] if len(shapes) > 1 else []
        assert " × ".join(map(str, [*copies, *shapes[0]])) in texts(link)


def test_the_words_are_the_models(width):
    drawn = links(module_map(), width)
    assert texts(drawn["words, chapter 1"][0])[:3] == ["a dog", "chased the", "red ball"]
    assert texts(drawn["answers, chapter 7"][0])[:2] == ["who: dog", "whom: ball"]


def test_every_piece_leads_to_its_chapters(width):
    drawn = links(module_map(), width)
    assert list(drawn) == [
        called
        for name in NAMES
        for called in (
            f"{name}, chapter {BUILT[name]}",
            *(["weights, chapter 5"] if name == "weights" else []),
        )
    ]
    for called, (link, _) in drawn.items():
        number = called.rsplit(" ", 1)[1]
        assert link.get("href") == f"#chapter-{number}"
        assert number in re.findall(r"\d", texts(link)[-1])


@pytest.mark.parametrize("lit", range(1, 8))
def test_what_a_chapter_builds_is_lit_and_what_comes_is_faint(lit, width):
    for called, (link, group) in links(module_map(lit), width).items():
        name, _, number = called.rpartition(", chapter ")
        is_faint = group.get("class") == "faint"
        if name == "weights":  # chapter 4 makes them, chapter 5 masks them
            assert is_faint == (lit < 4)
        else:
            assert is_faint == (int(number) > lit)
        if called == "weights, chapter 5":
            continue  # the number alone
        named = next(t for t in link.iter(f"{SVG}text") if t.text == name)
        is_lit = lit in ((4, 5) if name == "weights" else (int(number),))
        assert ("bold" in named.get("class", "").split()) == is_lit
    assert f"Lit: what chapter {lit} builds." in module_map(lit).alt


def test_the_whole_map_is_lit(width):
    groups = [group.get("class") for _, group in links(module_map(), width).values()]
    assert not [look for look in groups if look]


def marks(drawing, width):
    """Where each mark is, by its number."""
    root = ET.fromstring(getattr(drawing, width))
    found = {}
    for group in root.iter():
        for circle, number in itertools.pairwise(group):
            if circle.tag == f"{SVG}circle":
                found[int(number.text)] = float(circle.get("cx")), float(circle.get("cy"))
    return found


def test_a_mistake_is_marked_between_what_it_reads_and_what_it_spoils(width):
    drawing = module_map(mistakes=TEN)
    middles = {}
    for called, (link, _) in links(drawing, width).items():
        ground = link.find(f"{SVG}rect")
        x, y, wide = (float(ground.get(side)) for side in ("x", "y", "width"))
        middles.setdefault(called.rpartition(", chapter ")[0], (x + wide / 2, y + 36))
    found = marks(drawing, width)
    assert sorted(found) == list(range(1, 11))
    for number, name in enumerate(TEN, 1):
        (x, y), (to_x, to_y) = middles[NAMES[NAMES.index(name) - 1]], middles[name]
        at_x, at_y = found[number]
        if y == to_y:
            assert min(x, to_x) < at_x < max(x, to_x) and y < at_y < y + 50
        else:
            assert abs(at_x - x) < 30 and y < at_y < to_y


def test_the_marks_lie_on_nothing(width):
    drawing = module_map(mistakes=TEN)
    found = list(marks(drawing, width).values())
    for one, other in itertools.combinations(found, 2):
        assert math.dist(one, other) >= 17
    outermost = {"wide": WIDE, "narrow": NARROW}[width]
    root = ET.fromstring(getattr(drawing, width))
    words = [t for t in root.iter(f"{SVG}text") if t.get("class") != "on-mistake bold"]
    for x, y in found:
        assert 9 <= x <= outermost - 9
        for text in words:
            if text.get("transform"):
                continue
            half = 0.27 * float(text.get("font-size")) * len(text.text)
            shift = {"middle": 0, "start": half, "end": -half}[text.get("text-anchor")]
            middle, foot = float(text.get("x")) + shift, float(text.get("y"))
            beside = abs(middle - x) >= half + 8 or foot <= y - 7 or foot - 9 >= y + 8
            assert beside, (text.text, x, y)


def test_the_words_name_every_step_and_mistake():
    alt = module_map(mistakes=TEN).alt
    assert [alt.index(name) for name in NAMES[1:]] == sorted(alt.index(name) for name in NAMES[1:])
    assert alt.endswith(
        "Mistakes: 9, 10 at project; 7 at split; 1, 2 at q · k ÷ √d_key; "
        "3, 4, 5, 6 at mask, softmax; 8 at merge."
    )
