"""The waves are those of the trained rotary head, and add up to its scores."""

import math

import torch

from attention import Rotary, split_heads
from attention.drawings import distance_waves
from attention.trained import last_speaker
from attention.trained.last_speaker import WORDS
from tests.unit.drawings.reading import assert_drawn, read_back

MODEL = last_speaker.load("rotary").requires_grad_(False).double()
BACK = torch.arange(-20, 64, 2).double()
THETA = [1.0, 0.1, 0.01, 0.001]


def of_head_1(layer, word):
    row = MODEL.embedding(torch.tensor([[WORDS.index(word)]]))
    return split_heads(layer(row), 4)[0, 1, 0]  # (d_key,)


Q, K = of_head_1(MODEL.attention.w_q, "?"), of_head_1(MODEL.attention.w_k, "ann")


def parts():
    """The height and the top of every pair's wave, by complex numbers."""
    q, k = (torch.view_as_complex(x.view(4, 2)) for x in (Q, K))
    product = q * k.conj() / math.sqrt(8)
    theta = torch.tensor(THETA, dtype=torch.float64)
    return product.abs(), -product.angle() / theta, 2 * math.pi / theta


def by_turning():
    """What each pair adds: the query at place 20, turned as the module does, and keys around it."""
    rotary = Rotary(d_key=8).double()
    k = K.expand(1, 1, 84, 8)
    q = Q.expand(1, 1, 84, 8)
    q, k = rotary(q, k)
    at = 63  # of the query
    places = (at - BACK).long()
    products = (q[0, 0, at] * k[0, 0, places]).unflatten(-1, (4, 2)).sum(-1) / math.sqrt(8)
    return {f"pair {i}": products[:, i] for i in range(4)} | {"score": products.sum(-1)}


def test_the_waves_are_what_turning_gives():
    assert_drawn(distance_waves(BACK, *parts(), trained=16), by_turning())


def test_a_top_on_the_other_side_is_seen():
    height, top, period = parts()
    wrong = distance_waves(BACK, height, -top, period, trained=16)
    found = read_back(wrong.wide)["score"]
    assert not torch.allclose(found, by_turning()["score"], atol=1)


def test_it_says_where_the_tallest_wave_is_at_its_top():
    height, top, period = parts()
    drawing = distance_waves(BACK, height, top, period, trained=16)
    for place in (top[1], top[1] + period[1]):
        said = f"{place:.1f}".replace("-", "−")
        for svg in (drawing.wide, drawing.narrow):
            assert f"top at {said}" in svg
        assert said in drawing.alt
