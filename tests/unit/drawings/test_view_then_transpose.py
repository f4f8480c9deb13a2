"""Each step shows the same pieces of Q, in the order of its own tensor."""

import re
import xml.etree.ElementTree as ET

import torch

from attention import split_heads
from attention.drawings import view_then_transpose
from attention.example import running_example
from tests.unit.drawings.reading import read_back

EXAMPLE = running_example()
Q = EXAMPLE.attention.w_q(EXAMPLE.x)[[1]]
STEPS = view_then_transpose(Q[0], EXAMPLE.tokens[1], 2)
TENSORS = {"Q": Q[0], "view": Q[0].view(6, 2, 4), "transpose": split_heads(Q, 2)[0]}


def test_every_piece_shows_its_numbers():
    heads = split_heads(Q, 2)[0].double()  # (heads, seq, d_key)
    for drawing in STEPS.values():
        for svg in (drawing.wide, drawing.narrow):
            found = read_back(svg)
            assert len(found) == 12
            for name, piece in found.items():
                t, r = map(int, re.findall(r"\d", name))
                torch.testing.assert_close(piece, heads[r, t], rtol=0, atol=0.02)


def test_the_numbers_stand_in_the_order_of_each_steps_tensor():
    for step, tensor in TENSORS.items():
        for svg in (STEPS[step].wide, STEPS[step].narrow):
            texts = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
            numbers = [
                (float(text.get("y")), float(text.get("x")), float(text.text.replace("−", "-")))
                for text in texts
                if re.fullmatch(r"−?\d+\.\d", text.text or "")
            ]
            drawn = torch.tensor([number for *_, number in sorted(numbers)])
            torch.testing.assert_close(drawn, tensor.flatten(), rtol=0, atol=0.051)
