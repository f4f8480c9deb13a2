"""The arrows are as wide as the loss changes when an entry is nudged, and as autograd says."""

import functools

import pytest
import torch
from torch.nn import functional as F

from attention import merge_heads, split_heads
from attention.drawings import gradients_way_back
from attention.trained.who_and_whom import VOCABULARY, load_checkpoint
from tests.unit.drawings.reading import assert_drawn

IDS = VOCABULARY.encode_batch([["a", "dog", "chased", "the", "red", "ball"]])
VERB = 2
RIGHT = torch.tensor([VOCABULARY.ids["dog"], VOCABULARY.ids["ball"]])
STATIONS = ("answers", "row", "weights", "scores", "W_Q")


MODEL = load_checkpoint(seed=4, step=0).model.double()


def loss_from(station, given=None):
    """The loss, computed on from one station, which `given` replaces; and what stood there."""
    model, attention = MODEL, MODEL.attention
    w_q = given if station == "W_Q" else attention.w_q.weight.detach()
    x = model.embed(IDS)
    q = split_heads(x @ w_q.T + attention.w_q.bias, 2)
    k, v = split_heads(attention.w_k(x), 2), split_heads(attention.w_v(x), 2)
    scores = given if station == "scores" else q @ k.mT / 2
    weights = given if station == "weights" else scores.softmax(dim=-1)
    row = given if station == "row" else attention.w_o(merge_heads(weights @ v))[0, VERB]
    answers = (
        given if station == "answers" else torch.stack([model.to_who(row), model.to_whom(row)])
    )
    here = dict(zip(STATIONS, (answers, row, weights, scores, w_q), strict=True))
    return F.cross_entropy(answers, RIGHT, reduction="sum"), here


@functools.cache
@torch.no_grad()
def nudged():
    """The loss's change with each entry of each station, by a nudge to either side."""
    _, here = loss_from(None)
    rates = {}
    for name, tensor in here.items():
        rate = torch.zeros(tensor.numel(), dtype=torch.float64)
        for i in range(tensor.numel()):
            nudge = torch.zeros_like(rate)
            nudge[i] = 1e-5
            nudge = nudge.view(tensor.shape)
            up, _ = loss_from(name, tensor + nudge)
            down, _ = loss_from(name, tensor - nudge)
            rate[i] = (up - down) / 2e-5
        rates[name] = rate.view(tensor.shape)
    return rates


def backward():
    """What `backward` leaves in W_Q, through the whole model."""
    answer = MODEL(IDS, torch.tensor([VERB]))
    loss = F.cross_entropy(answer.who, RIGHT[:1]) + F.cross_entropy(answer.whom, RIGHT[1:])
    [gradient] = torch.autograd.grad(loss, MODEL.attention.w_q.weight)
    return gradient


def test_each_arrow_is_as_wide_as_the_largest_gradient():
    rates = nudged()
    expected = torch.stack([rates[name].abs().max() for name in STATIONS])
    drawing = gradients_way_back(rates)
    assert_drawn(drawing, {"largest": expected})
    for size in expected.tolist():
        assert f"{size:.3f}" in drawing.wide and f"{size:.3f}" in drawing.narrow
    assert expected[-1].item() == pytest.approx(backward().abs().max().item(), abs=1e-6)


def test_the_softmax_lets_least_through():
    sizes = [rates.abs().max().item() for rates in nudged().values()]
    passed = [after / before for before, after in zip([1.0, *sizes], sizes, strict=False)]
    assert min(passed) == passed[STATIONS.index("scores")] < 0.2


def test_a_gradient_without_its_sign_is_drawn():
    gradients = {name: torch.tensor([0.1, -0.5]) for name in STATIONS}
    assert_drawn(gradients_way_back(gradients), {"largest": torch.full((5,), 0.5)})


def test_another_gradient_is_seen():
    gradients = {name: torch.tensor([0.5]) for name in STATIONS}
    with pytest.raises(AssertionError):
        expected = {"largest": torch.tensor([0.5, 0.5, 0.5, 0.4, 0.5])}
        assert_drawn(gradients_way_back(gradients), expected)
