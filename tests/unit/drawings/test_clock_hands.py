"""The clocks show the encoding: angle pos / 10000^(2i/d_model), clockwise from twelve."""

import math

import pytest
import torch

from attention.drawings import clock_hands
from attention.embedding import sines_and_cosines
from tests.unit.drawings.reading import assert_drawn, read_back


def by_angle(length, d_model):
    hands = {}
    for i in range(d_model // 2):
        angles = [pos / 10000 ** (2 * i / d_model) for pos in range(length)]
        hands[f"hand {i}"] = torch.tensor(
            [[math.sin(a), math.cos(a)] for a in angles], dtype=torch.float64
        )
    return hands


@pytest.mark.parametrize(("length", "d_model"), [(6, 8), (3, 4)])
def test_hands_stand_at_their_angles(length, d_model):
    assert_drawn(clock_hands(sines_and_cosines(length, d_model)), by_angle(length, d_model))


def test_positions_counted_from_one_are_seen():
    shifted = clock_hands(sines_and_cosines(7, 8)[1:])
    with pytest.raises(AssertionError):
        assert_drawn(shifted, by_angle(6, 8))


def test_at_position_0_every_hand_points_up():
    for svg in (drawing := clock_hands(sines_and_cosines(6, 8))).wide, drawing.narrow:
        for hand in read_back(svg).values():
            torch.testing.assert_close(
                hand[:2], torch.tensor([0.0, 1.0], dtype=torch.float64), atol=0.02, rtol=0
            )
