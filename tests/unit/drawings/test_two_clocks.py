"""The hands stand where complex numbers put them; together they move, apart they do not."""

import cmath

import pytest
import torch

from attention.drawings import two_clocks
from tests.unit.drawings.reading import assert_drawn, read_back

Q, K, THETA = 2 + 1j, 1 + 3j, 0.1


def hand(number):
    return torch.tensor([[number.real, number.imag]], dtype=torch.float64)


def drawn(places, theta=THETA):
    return two_clocks(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 3.0]), theta, places)


@pytest.mark.parametrize(("m", "n"), [(5, 3), (57, 55), (3, 5), (4, 4)])
def test_the_hands_are_turned_by_their_places(m, n):
    query, key = Q * cmath.exp(1j * m * THETA), K * cmath.exp(1j * n * THETA)
    expected = {"query": hand(query), "key": hand(key)}
    expected |= {f"{name} again": value for name, value in expected.items()}
    [drawing] = drawn([(m, n)]).values()
    assert_drawn(drawing, expected)
    product = f"{(query * key.conjugate()).real:.4f}"
    assert f"product: {product}" in drawing.wide
    assert f"product is {product}" in drawing.alt


def test_slid_together_the_angle_stays():
    for drawing in drawn([(5, 3), (7, 5), (57, 55)]).values():
        assert "angle between: 0.585" in drawing.wide
        assert "angle between: 0.585" in drawing.narrow
    [ahead] = drawn([(3, 5)]).values()
    assert "angle between: 0.985" in ahead.wide


def test_another_angle_is_seen():
    [one] = drawn([(5, 3)]).values()
    [other] = drawn([(5, 3)], theta=0.2).values()
    assert not torch.allclose(read_back(one.wide)["query"], read_back(other.wide)["query"])
