"""Rotary angles for longer texts, pair by pair, as the papers and their code say."""

import math

import pytest
import torch

from attention import DotProduct, LinearBias, MultiHeadAttention, Rotary
from attention.positions.longer import (
    interpolated_angles,
    llama3_angles,
    yarn_angles,
    yarn_length,
)
from tests.unit.cases import assert_close
from tests.unit.refusals import refusals


def thetas(d_key, base=10000.0):
    return torch.tensor([base ** (-2 * i / d_key) for i in range(d_key // 2)], dtype=torch.float64)


@pytest.mark.parametrize(("factor", "length"), [(8.0, 8192), (4.0, 64), (1.0, 128)])
def test_llama3s_angles_by_wavelength(factor, length):
    ours = llama3_angles(factor, length)(thetas(64))
    for theta, new in zip(thetas(64).tolist(), ours.tolist(), strict=True):
        wave = 2 * math.pi / theta
        if wave < length / 4:
            expected = theta
        elif wave > length:
            expected = theta / factor
        else:
            smooth = (length / wave - 1) / (4 - 1)
            expected = (1 - smooth) * theta / factor + smooth * theta
        assert new == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("factor", "length", "base"), [(8.0, 2048, 1e4), (4.0, 64, 1e6)])
def test_yarns_angles_by_pair(factor, length, base):
    def pair(rounds):
        return 64 * math.log(length / (rounds * 2 * math.pi)) / (2 * math.log(base))

    first, last = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), 63)
    ours = yarn_angles(factor, length, base)(thetas(64, base))
    for i, (theta, new) in enumerate(zip(thetas(64, base).tolist(), ours.tolist(), strict=True)):
        slowed = min(max((i - first) / (last - first), 0.0), 1.0)
        assert new == pytest.approx(theta * (1 - slowed) + theta / factor * slowed, rel=1e-12)
    assert yarn_length(factor) == pytest.approx(0.1 * math.log(factor) + 1)


def test_interpolated_positions_turn_as_those_between():
    """Every second position of a text twice as long turns as the positions did."""
    x = torch.randn(1, 1, 9, 8, dtype=torch.float64)
    slow, plain = Rotary(8, angles=interpolated_angles(2.0)).double(), Rotary(8).double()
    turned, _ = slow(x, x)
    expected, _ = plain(x[:, :, ::2], x[:, :, ::2])
    assert_close(turned[:, :, ::2], expected)


@pytest.mark.parametrize("halves", [False, True])
def test_the_length_multiplies_scores_by_its_square(halves):
    rotary = Rotary(8, halves=halves, angles=yarn_angles(8.0, 32, 1e4), length=1.25)
    same = Rotary(8, halves=halves, angles=yarn_angles(8.0, 32, 1e4))
    q, k = torch.randn(2, 1, 2, 40, 8, dtype=torch.float64)
    scores = DotProduct(transform=rotary.double()).scores(q, k)
    assert_close(scores, DotProduct(transform=same.double()).scores(q, k) * 1.25**2)


def test_a_moved_module_keeps_its_angles():
    rotary = Rotary(8, angles=llama3_angles(8.0, 16), length=1.5)
    x = torch.randn(1, 1, 30, 8)
    attention = MultiHeadAttention(8, 1, attend=DotProduct(transform=rotary)).double()
    turned, _ = attention.attend.transform(x.double(), x.double())
    assert_close(turned.float(), Rotary(8, angles=llama3_angles(8.0, 16), length=1.5)(x, x)[0])


@pytest.mark.parametrize("halves", [False, True])
def test_angles_are_float32_where_the_default_is_half(halves):
    x, before = torch.randn(1, 1, 9, 8), torch.get_default_dtype()
    expected, _ = Rotary(8, halves=halves)(x, x)
    try:
        torch.set_default_dtype(torch.bfloat16)
        turned, _ = Rotary(8, halves=halves)(x, x)
        far = LinearBias(2)(1, 600)[0, 0, :3]
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(turned, expected)
    assert len(set(far.tolist())) == 3


REFUSED = {
    "one angle for all pairs": (
        lambda: Rotary(8, angles=lambda theta: theta[:1]),
        ValueError,
        "what angles returns must have shape (pairs) = (4,), got (1,)",
    ),
    "shorter texts": (
        lambda: interpolated_angles(0.5),
        ValueError,
        "factor says how much longer texts get, at least 1, got 0.5",
    ),
    "a ramp downwards": (
        lambda: llama3_angles(8.0, 8192, low=4.0, high=1.0),
        ValueError,
        "low must be above 0 and below high, got low=4.0 and high=1.0",
    ),
    "no function": (
        lambda: Rotary(8, angles=8.0),
        TypeError,
        "angles must be a function of all angles, as llama3_angles(…) makes one, got 8.0",
    ),
}


test_bad_input_is_refused = refusals(REFUSED)
