"""Reads the numbers of a drawing back from its shapes: shades, heights, places and widths."""

import xml.etree.ElementTree as ET

import torch

from attention.drawings.drawing import SHADE, Drawing

SVG = "{http://www.w3.org/2000/svg}"


def elements(svg: str, *tags: str) -> list[ET.Element]:
    return [each for each in ET.fromstring(svg).iter() if each.tag.removeprefix(SVG) in tags]


def read_back(svg: str) -> dict[str, torch.Tensor]:
    """The entries of every tensor that is drawn, by its name, in the order in which they stand."""
    found = {}
    for group in ET.fromstring(svg).iter():
        if "data-tensor" not in group.attrib:
            continue
        read = READERS[group.attrib["data-kind"]]
        scale = float(group.attrib["data-scale"])
        entries = [read(element) for element in group]
        numbers = scale * torch.tensor(entries, dtype=torch.float64)
        found[group.attrib["data-tensor"]] = numbers.flatten()
    return found


def read_vector(arrow: ET.Element) -> tuple[float, float]:
    """From the middle of an arrow's foot, the fourth and fifth point of its outline, to its tip."""
    outline = arrow.get("d").strip("MZ").split("L")
    places = [complex(*map(float, place.split(","))) for place in outline]
    along = places[0] - (places[3] + places[4]) / 2
    return along.real, -along.imag


READERS = {
    "shades": lambda cell: float(cell.get("fill-opacity")) / SHADE * int(cell.get("data-sign")),
    "bars": lambda bar: float(bar.get("height")) * int(bar.get("data-sign")),
    "points": lambda dot: -float(dot.get("cy")),
    "flows": lambda line: float(line.get("stroke-width")),
    "strip": lambda part: float(part.get("width")) * int(part.get("data-sign")),
    "vectors": read_vector,
}


def assert_drawn(drawing: Drawing, expected: dict[str, torch.Tensor], atol: float = 0.02) -> None:
    """Both SVGs show these tensors, and the drawing keeps them as its values."""
    assert drawing.values.keys() == expected.keys()
    for svg in (drawing.wide, drawing.narrow):
        found = read_back(svg)
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            wanted = tensor.detach().double()
            torch.testing.assert_close(drawing.values[name], wanted, rtol=0, atol=1e-6)
            torch.testing.assert_close(found[name], wanted.flatten(), rtol=0, atol=atol)
