"""The dots lie on the roof: a slope up to the ridge, and level from there on."""

import math

import pytest
import torch

from attention.cost.decode import H100
from attention.drawings import roofline
from tests.unit.drawings.reading import assert_drawn

INTENSITY = torch.tensor([1.0, 8.0, 1024.0])
NAMES = ["multi-head", "grouped", "prefill"]


def drawn(intensity):
    return roofline(intensity, NAMES, bandwidth=H100.bandwidth, peak=H100.peak)


def decades_above_half_a_flop_a_byte():
    rates = [H100.attainable(each) for each in INTENSITY.tolist()]
    return torch.tensor([math.log10(rate / H100.attainable(0.5)) for rate in rates])


def test_the_dots_are_as_high_as_what_the_processor_attains():
    expected = decades_above_half_a_flop_a_byte()
    assert_drawn(drawn(INTENSITY), {"attainable": expected})
    assert expected[1] - expected[0] == pytest.approx(math.log10(8))


def test_an_intensity_that_is_twice_as_high_is_seen():
    with pytest.raises(AssertionError):
        wrong = drawn(INTENSITY * torch.tensor([1.0, 2.0, 1.0]))
        assert_drawn(wrong, {"attainable": decades_above_half_a_flop_a_byte()})


def test_the_ridge_is_named():
    assert "ridge: 295" in drawn(INTENSITY).wide
    assert "ridge at 295 FLOPs a byte" in drawn(INTENSITY).alt
