"""The cone: what is full leads to the last token, and every line is one that the mask allows."""

import xml.etree.ElementTree as ET

import pytest
import torch

from attention import causal_mask, sliding_window_mask
from attention.drawings import cone
from attention.drawings.drawing import NARROW, WIDE

SVG = "{http://www.w3.org/2000/svg}"
LOCAL, ALL = sliding_window_mask(12, 2, causal=True), causal_mask(12)
STACKS = {"local": [LOCAL] * 3, "local, local, all": [LOCAL, LOCAL, ALL]}


@pytest.fixture(params=["wide", "narrow"])
def root(request):
    return ET.fromstring(getattr(cone(STACKS), request.param))


def rows(root):
    """The full dots of each row, stack by stack, from the tokens up."""
    return [
        ["fill" in dot.get("class") for dot in group.iter(f"{SVG}circle")]
        for group in root.iter(f"{SVG}g")
        if group.get("data-layer")
    ]


def by_perturbing(masks):
    """Row by row: change one token's row before a layer, and see whether the last row changes."""

    def last(x, above):
        for mask in above:
            x = x + mask.double() @ x
        return x[-1]

    found = []
    for layer in range(len(masks) + 1):
        x = torch.rand(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        before = last(x, masks[layer:])
        changed = [last(x + torch.eye(12)[i], masks[layer:]) != before for i in range(12)]
        found.append([bool(each) for each in changed])
    return found


def test_what_is_full_changes_the_last_row(root):
    assert rows(root) == [row for masks in STACKS.values() for row in by_perturbing(masks)]


def test_another_mask_is_another_cone():
    wider = sliding_window_mask(12, 3, causal=True)
    other = ET.fromstring(cone({"local": [wider] * 3}).wide)
    assert rows(other) != by_perturbing([LOCAL] * 3)


def test_the_words_count_what_is_reached():
    assert (
        "local: 3 layers; the last token can have heard of the last 3, 5, 7 of 12"
        in cone(STACKS).alt
    )
    assert (
        "all: 3 layers; the last token can have heard of the last 12, 12, 12 of 12"
        in cone(STACKS).alt
    )


def test_it_stays_within_its_width(root):
    assert float(root.get("width")) in (WIDE, NARROW)
    places = [float(dot.get("cx")) for dot in root.iter(f"{SVG}circle")]
    assert min(places) > 60 and max(places) + 4 <= float(root.get("width"))
