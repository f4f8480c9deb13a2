"""The maps of Part I and II and the chart of Part III: shapes of tensors, and links to chapters."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import pytest

from attention.drawings import module_map, two_towers, which_one
from attention.drawings.maps import DATE, HIGH, ISO, LAST, QUESTIONS, SMALL, UNIT
from attention.example import running_example
from attention.trained.dates import load
from tests.unit.drawings.reading import SVG, elements
from tests.unit.drawings.rows import TEN_MISTAKES

STEPS = ["words", "X", "Q, K, V", "heads", "scores", "weights"]
STEPS += ["sums", "merged", "output", "row", "answers"]
MODULE = list(zip(STEPS, (1, 1, 2, 3, 4, 4, 6, 6, 6, 7, 7), strict=True))
MODULE.insert(STEPS.index("weights") + 1, ("weights", 5))  # chapter 5 masks them
TOWERS = {"letters": 1, "signs": 1, "positions": 10, "attention": 7, "causal": 5}
TOWERS |= {"cross-attention": 9, "feed-forward": 11, "layers": 12, "logits, loss": 8}
MAPS = {module_map: MODULE, two_towers: list(TOWERS.items())}


@pytest.fixture(params=["wide", "narrow"])
def width(request):
    return request.param


def texts(element):
    return [text.text for text in element.iter(f"{SVG}text")]


def pieces(drawn, drawing, width):
    """Every piece in its order: its name, its chapter, its link and the group around that."""
    root, names = ET.fromstring(getattr(drawing, width)), dict(MAPS[drawn])
    around = {child: parent for parent in root.iter() for child in parent}
    for link in root.iter(f"{SVG}a"):
        # The names of axes are smaller than those of pieces.
        large = [text.text for text in link.iter(f"{SVG}text") if text.get("font-size") == "12"]
        label = (link.get("aria-label") or "").rpartition(", chapter ")[0]
        for name in [label] if label in names else [each for each in large if each in names]:
            chapter = int(re.fullmatch(r"#chapter-(\d+)", link.get("href"))[1])
            yield name, chapter, link, around[link]


@pytest.mark.parametrize("drawn", MAPS)
def test_every_piece_leads_to_its_chapter(drawn, width):
    found = list(pieces(drawn, drawn(), width))
    assert {(name, chapter) for name, chapter, *_ in found} == {*MAPS[drawn]}
    for _, chapter, link, _ in found:
        assert any(str(chapter) in re.findall(r"\d+", text) for text in texts(link))


def shapes_of_the_module():
    """The tensors on the way through one sentence, computed line by line."""
    example = running_example()
    x, layer = example.x[1], example.attention
    q, k, v = (each(x) for each in (layer.w_q, layer.w_k, layer.w_v))
    scores = [a @ b.T / math.sqrt(4) for a, b in zip(q.split(4, -1), k.split(4, -1), strict=True)]
    sums = [s.softmax(dim=-1) @ b for s, b in zip(scores, v.split(4, -1), strict=True)]
    made = {"X": [x], "Q, K, V": [q, k, v], "heads": q.split(4, -1), "scores": scores}
    made |= {"weights": scores, "sums": sums, "merged": [x], "output": [x], "row": [x[2:3]]}
    return {name: [tuple(one.shape) for one in tensors] for name, tensors in made.items()}


def shapes_of_the_towers():
    model = load("transformer").transformer
    d_model, heads = 48, len(model.decoder.layers[0].cross_attention.w_q.weight) // 12
    read, written = len(DATE), len(ISO) + 1
    return {
        "letters": [(read, d_model)],
        "signs": [(written, d_model)],
        "attention": heads * [(read, read)],
        "causal": heads * [(written, written)],
        "cross-attention": [(read, d_model), *heads * [(written, read)]],
        "logits, loss": [(written, model.to_logits.out_features)],
    }


@pytest.mark.parametrize(
    ("drawn", "shapes", "unit"),
    [(module_map, shapes_of_the_module, UNIT), (two_towers, shapes_of_the_towers, SMALL)],
)
def test_every_box_has_the_shape_of_its_tensor(drawn, shapes, unit, width):
    found = {}
    for name, _, link, _ in pieces(drawn, drawn(), width):
        boxes = [
            (round(float(box.get("height")) / unit, 2), round(float(box.get("width")) / unit, 2))
            for box in link.iter(f"{SVG}rect")
            # Frames and signs of a sum are rounded, tensors are not.
            if "stroke" in box.get("class").split() and box.get("rx") is None
        ]
        found.setdefault(name, boxes)
    for name, expected in shapes().items():
        assert found[name] == expected, name


@pytest.mark.parametrize(
    ("drawn", "lit"),
    [(module_map, lit) for lit in range(1, 8)] + [(two_towers, lit) for lit in range(8, 13)],
)
def test_what_a_chapter_builds_is_lit_and_what_comes_is_faint(drawn, lit, width):
    for name, _, link, group in pieces(drawn, drawn(lit), width):
        built = dict(reversed(MAPS[drawn]))[name]  # by the first of its chapters
        assert (group.get("class") == "faint") == (built > lit), name
        for named in (text for text in link.iter(f"{SVG}text") if text.text == name):
            is_lit = lit in [each for other, each in MAPS[drawn] if other == name]
            assert ("bold" in named.get("class", "").split()) == is_lit, name


@pytest.mark.parametrize(
    ("drawn", "lit"), [(module_map, None), (two_towers, None), (two_towers, 13)]
)
def test_the_whole_map_is_lit(drawn, lit, width):
    assert 'class="faint"' not in getattr(drawn(lit), width)


def test_the_words_of_a_map_are_the_models_in_the_order_of_the_arrows(width):
    of = {name: texts(link) for name, _, link, _ in pieces(module_map, module_map(), width)}
    assert of["words"][:3] == ["a dog", "chased the", "red ball"]
    assert of["answers"][:2] == ["who: dog", "whom: ball"]
    order = ["letters, 26 × 48", "4 × 26 × 26", "memory, 26 × 48"]
    order += ["signs, 11 × 48", "4 × 11 × 11", "4 × 11 × 26", "logits, 11 × 14"]
    for alt, names in ((module_map().alt, STEPS[1:]), (two_towers().alt, order)):
        assert [alt.index(name) for name in names] == sorted(alt.index(name) for name in names)


def test_a_mistake_is_marked_between_what_it_reads_and_what_it_spoils(width):
    drawing = module_map(mistakes=TEN_MISTAKES)
    middles, marks = {}, {}
    for name, _, link, _ in pieces(module_map, drawing, width):
        ground = link.find(f"{SVG}rect")
        x, y, wide = (float(ground.get(side)) for side in ("x", "y", "width"))
        middles.setdefault(name, (x + wide / 2, y + 36))
    for group in ET.fromstring(getattr(drawing, width)).iter():
        for circle, number in itertools.pairwise(group):
            if circle.tag == f"{SVG}circle":
                marks[int(number.text)] = float(circle.get("cx")), float(circle.get("cy"))
    assert sorted(marks) == list(range(1, 11))
    for number, name in enumerate(TEN_MISTAKES, 1):
        (x, y), (to_x, to_y) = middles[STEPS[STEPS.index(name) - 1]], middles[name]
        at_x, at_y = marks[number]
        if y == to_y:
            assert min(x, to_x) < at_x < max(x, to_x) and y < at_y < y + 50
        else:
            assert abs(at_x - x) < 30 and y < at_y < to_y
    for one, other in itertools.combinations(marks.values(), 2):
        assert math.dist(one, other) >= 17


def test_the_chart_leads_from_every_question_to_a_mechanism_and_its_chapters(width):
    every, svg = (*QUESTIONS, LAST), getattr(which_one(), width)
    written = texts(ET.fromstring(svg))
    assert {line for each in every for line in (*each.words, *each.answer)} <= {*written}
    assert written.count("yes") == written.count("no") == len(QUESTIONS)
    links = [(link.get("href"), texts(link)) for link in elements(svg, "a")]
    assert links == [(f"#chapter-{n}", [f"chapter {n}"]) for each in every for n in each.chapters]
    alt = which_one().alt
    order = [alt.index(line) for each in every for line in (*each.words, *each.answer)]
    assert order == sorted(order) and alt.count("If so, ") == len(QUESTIONS)


def test_nothing_of_the_chart_lies_on_anything(width):
    svg = getattr(which_one(), width)
    boxes = [
        tuple(float(box.get(side)) for side in ("x", "y", "width"))
        for box in elements(svg, "rect")
        if "stroke" in (box.get("class") or "")
    ]
    assert len(boxes) == 2 * len(QUESTIONS) + 1
    for (x, y, wide), (other_x, other_y, other_wide) in itertools.combinations(boxes, 2):
        beside = x >= other_x + other_wide or other_x >= x + wide
        assert beside or abs(y - other_y) >= HIGH
    for link in elements(svg, "a"):
        at, foot = (float(link.find(f"{SVG}text").get(side)) for side in "xy")
        under = [box for box in boxes if box[0] <= at < box[0] + box[2] and -12 < box[1] - foot < 0]
        assert not under, "a link lies on a box"
