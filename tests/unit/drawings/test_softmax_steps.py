"""Scores, powers and shares are drawn in every step, and are those of torch's softmax."""

import torch

from attention.drawings import softmax_steps
from tests.unit.drawings.reading import assert_drawn


def test_the_bars_are_scores_powers_and_shares():
    scores = torch.tensor([2.0, 1.0, 0.0])
    steps = softmax_steps(scores, ["a", "b", "c"])
    assert list(steps) == ["scores", "powers", "shares"]
    powers = torch.tensor([torch.e**2, torch.e, 1.0])
    shares = torch.softmax(scores, dim=-1)
    for drawing in steps.values():
        expected = {"scores": scores, "powers": powers, "shares": shares}
        assert_drawn(drawing, expected, atol=0.002)


def test_each_step_lights_another():
    steps = softmax_steps(torch.tensor([2.0, 1.0]), ["a", "b"]).values()
    assert len({drawing.wide for drawing in steps}) == 3
    assert all(drawing.wide.count('class="faint"') == 2 for drawing in steps)
