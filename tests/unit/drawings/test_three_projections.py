"""The cells drawn are X, the three matrices as formulas have them, and Q, K and V."""

import gzip

import pytest
import torch

from attention import running_example
from attention.drawings import three_projections
from tests.unit.drawings.reading import assert_drawn


@pytest.fixture(scope="module")
def made():
    example = running_example()
    attention = example.attention
    layers = {"Q": attention.w_q, "K": attention.w_k, "V": attention.w_v}
    return example.x[0], layers, example.tokens[0]


def expected(x, layers):
    values = {"X": x}
    for name, layer in layers.items():
        w = layer.weight.T
        values[f"W_{name}"] = w
        values[name] = torch.stack([(row[:, None] * w).sum(0) + layer.bias for row in x])
    return values


def test_one_x_and_three_products(made):
    x, layers, tokens = made
    assert_drawn(three_projections(x, layers, tokens, 2), expected(x, layers))


def test_matrices_exchanged_are_seen(made):
    x, layers, tokens = made
    swapped = layers | {"Q": layers["K"], "K": layers["Q"]}
    with pytest.raises(AssertionError):
        assert_drawn(three_projections(x, swapped, tokens, 2), expected(x, layers))


def test_it_stays_small(made):
    x, layers, tokens = made
    drawing = three_projections(x, layers, tokens, 2)
    for svg in (drawing.wide, drawing.narrow):
        assert len(gzip.compress(svg.encode())) < 12_000
