"""Each row sees the signs up to its place and is compared with the next one."""

import re

import pytest
import torch

from attention import causal_mask
from attention.drawings import teacher_forcing
from attention.trained.dates import SIGN_NAMES, SIGNS
from tests.unit.drawings.reading import assert_drawn

IDS = SIGNS.encode_batch([["<start>", *"1973-03-04", "<end>"]])[0]
NAMES = ["start", *"1973-03-04", "end"]


def drawn(reads, asked_for, mask):
    return teacher_forcing(reads, asked_for, mask, SIGN_NAMES.__getitem__)


def line(svg, y):
    """The words at this height, from left to right."""
    found = re.findall(rf'x="([\d.]+)" y="{y}(?:\.0)?"[^>]*>([^<]+)</text', svg)
    return [words for _, words in sorted(found, key=lambda each: float(each[0]))]


def test_a_row_sees_its_beginning_and_is_asked_for_the_next():
    drawing = drawn(IDS[:-1], IDS[1:], causal_mask(11))
    triangle = torch.tensor([[float(s <= t) for s in range(11)] for t in range(11)])
    assert_drawn(drawing, {"sees": triangle})
    for svg in (drawing.wide, drawing.narrow):
        assert line(svg, 43) == NAMES[:-1]
        for t in range(11):
            # What it sees, the next sign where it is hidden, and the same one beside the row.
            hidden = NAMES[t + 1 : t + 2] if t < 10 else []
            row = [word for word in line(svg, 62 + 22 * t + 15) if word != "hidden"]
            assert row == [*NAMES[: t + 1], *hidden, NAMES[t + 1]]
        assert svg.count("stroke-dasharray") == 1 + 10  # in the style, and on the hidden signs
    assert "the row that sees start 1 9 is compared with 7" in drawing.alt


def test_signs_that_are_not_one_place_late_are_seen():
    drawing = drawn(IDS[:-1], IDS[:-1], causal_mask(11))
    assert line(drawing.wide, 77) == ["start", "1", "start"]


def test_a_mask_that_shows_the_answer_is_seen():
    drawing = drawn(IDS[:-1], IDS[1:], torch.ones(11, 11, dtype=torch.bool))
    assert drawing.wide.count("stroke-dasharray") == 1
    with pytest.raises(AssertionError):
        assert_drawn(drawing, {"sees": causal_mask(11).double()})
