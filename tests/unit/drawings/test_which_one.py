"""The decision chart: every question has its two ways, every mechanism leads to its chapters."""

import re
import xml.etree.ElementTree as ET

import pytest

from attention.drawings import which_one
from attention.drawings.drawing import NARROW, WIDE
from attention.drawings.which_one import HIGH, LAST, QUESTIONS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=["wide", "narrow"])
def root(request):
    return ET.fromstring(getattr(which_one(), request.param))


def texts(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def test_every_question_and_mechanism_is_written(root):
    for question in (*QUESTIONS, LAST):
        assert {*question.words, *question.answer} <= set(texts(root))
    assert texts(root).count("yes") == texts(root).count("no") == len(QUESTIONS)


def test_every_mechanism_leads_to_its_chapters(root):
    links = [link.get("href") for link in root.iter(f"{SVG}a")]
    assert links == [f"#chapter-{n}" for each in (*QUESTIONS, LAST) for n in each.chapters]
    for link in root.iter(f"{SVG}a"):
        assert texts(link) == [link.get("href").removeprefix("#").replace("-", " ")]


def test_nothing_lies_on_anything_or_beyond_the_edge(root):
    wide = float(root.get("width"))
    assert wide in (WIDE, NARROW)
    boxes = [
        tuple(float(box.get(side)) for side in ("x", "y", "width"))
        for box in root.iter(f"{SVG}rect")
        if "stroke" in (box.get("class") or "")
    ]
    assert len(boxes) == 2 * len(QUESTIONS) + 1
    for x, y, width in boxes:
        assert x >= 0 and x + width <= wide and y + HIGH <= float(root.get("height"))
    for i, (x, y, width) in enumerate(boxes):
        for other_x, other_y, other_width in boxes[:i]:
            beside = x >= other_x + other_width or other_x >= x + width
            assert beside or abs(y - other_y) >= HIGH
    for link in root.iter(f"{SVG}a"):
        at, foot = (float(link.find(f"{SVG}text").get(side)) for side in "xy")
        under = [box for box in boxes if box[0] <= at < box[0] + box[2] and -12 < box[1] - foot < 0]
        assert not under, "a link lies on a box"
    for text in root.iter(f"{SVG}text"):
        half = 0.27 * float(text.get("font-size")) * len(text.text)
        start = float(text.get("x")) - (half if text.get("text-anchor") == "middle" else 0)
        assert start >= 0 and start + 2 * half <= wide, text.text


def test_the_words_follow_the_ways():
    alt = which_one().alt
    order = [alt.index(line) for each in (*QUESTIONS, LAST) for line in (*each.words, *each.answer)]
    assert order == sorted(order)
    assert len(re.findall("If so, ", alt)) == len(QUESTIONS)
