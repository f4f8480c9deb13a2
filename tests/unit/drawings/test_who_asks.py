"""Both orders are those in which the decoders compute."""

import re

import torch

from attention import BahdanauDecoder, LuongDecoder
from attention.drawings import who_asks


def order_of(decoder):
    """Which of a step's parts is called first: the attention or the recurrence."""
    called = []
    state, attend = decoder.attend_to(torch.randn(1, 4, 6))
    decoder.cell.register_forward_hook(lambda *_: called.append("GRU"))

    def asked(query):
        called.append("asks")
        return attend(query)

    decoder.step(torch.randn(1, 5), state, asked)
    return called


def test_who_asks_when_is_what_the_modules_do():
    told = who_asks().alt
    for name, decoder in (("Bahdanau", BahdanauDecoder), ("Luong", LuongDecoder)):
        said = re.search(rf"{name}: ([^.]*)\.", told)[1]
        assert re.findall(r", (GRU|asks):", said) == order_of(decoder(9, 5, 6, 3))


def test_both_orders_are_drawn_one_beside_the_other_or_below():
    drawing = who_asks()
    for svg in (drawing.wide, drawing.narrow):
        assert svg.count(">asks<") == 2 and svg.count(">GRU<") == 2
        assert svg.index("Bahdanau") < svg.index("Luong")
