"""The points stand at the rates that autograd finds."""

import torch

from attention.drawings import listening
from tests.unit.drawings.reading import assert_drawn


def test_the_points_are_the_diagonal_of_the_softmaxs_derivative():
    scores = {"open": torch.tensor([1.0, 0.5, 0.0]), "sure": torch.tensor([12.0, 2.0, 1.0])}
    rates = {
        name: torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), s).diagonal()
        for name, s in scores.items()
    }
    drawing = listening({name: s.softmax(dim=-1) for name, s in scores.items()})
    assert_drawn(drawing, rates, atol=0.001)
