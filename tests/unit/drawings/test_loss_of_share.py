"""The marks stand at the cross-entropy of their shares, and every halving adds as much."""

import re

import pytest
import torch
from torch.nn import functional as F

from attention.drawings import loss_of_share
from attention.trained.who_and_whom import VOCABULARY, load_checkpoint
from tests.unit.drawings.reading import assert_drawn, read_back


def cross_entropy(share):
    """By torch, of two words with these shares, the first of which is right."""
    logits = torch.tensor([[share, 1 - share]], dtype=torch.float64).log()
    return F.cross_entropy(logits, torch.tensor([0]))


@pytest.mark.parametrize(("share", "halvings"), [(0.3, 1), (0.25, 2), (0.0074, 7)])
def test_the_marks_are_the_losses_of_their_shares(share, halvings):
    expected = {
        "halvings": torch.stack([cross_entropy(0.5**n) for n in range(halvings + 1)]),
        "model": cross_entropy(share)[None],
    }
    assert_drawn(loss_of_share(torch.tensor(share, dtype=torch.float64), "dog"), expected)


def test_the_untrained_model_stands_where_its_loss_is():
    model = load_checkpoint(seed=4, step=0).model.double()
    ids = VOCABULARY.encode_batch([["a", "dog", "chased", "the", "red", "ball"]])
    answer = model(ids, torch.tensor([2])).who
    dog = VOCABULARY.ids["dog"]
    drawing = loss_of_share(answer.softmax(dim=-1)[0, dog], "dog")
    expected = F.cross_entropy(answer, torch.tensor([dog])).item()
    for svg in (drawing.wide, drawing.narrow):
        assert read_back(svg)["model"].item() == pytest.approx(expected, abs=0.02)
        assert f"loss {expected:.2f}" in svg


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_the_curve_runs_through_the_marks(width):
    svg = getattr(loss_of_share(torch.tensor(0.01), "dog"), width)
    [d] = re.findall(r'<path d="M([^"]*)" [^>]*stroke-width="2"', svg)
    curve = torch.tensor([[float(n) for n in at.split(",")] for at in d.split("L")])
    [group] = re.findall(r'<g[^>]*data-tensor="halvings".*?</g>', svg)
    [line] = map(float, re.findall(r"translate\(0 ([\d.]+)\)", group))
    marks = [tuple(map(float, at)) for at in re.findall(r'cx="([^"]+)" cy="([^"]+)"', group)]
    assert len(marks) == 7
    for x, y in marks:
        nearest = (curve - torch.tensor([x, line + y])).norm(dim=-1).min()
        assert nearest < 12, f"no point of the curve is near {x}, {y}"
