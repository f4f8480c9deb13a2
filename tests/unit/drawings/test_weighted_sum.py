"""What flows together is the sum of the value rows, each times the width of its flow."""

import torch

from attention.drawings import weighted_sum
from attention.trained import who_and_whom
from tests.unit.drawings.reading import assert_drawn, read_back


def drawn(n_heads):
    model = who_and_whom.load(8, n_heads)
    tokens = ["the", "cat", "saw", "the", "other", "cat"]
    x = model.embed(who_and_whom.VOCABULARY.encode_batch([tokens]))
    _, weights = model.attention(x)
    values = model.attention.w_v(x)[0, :, : 8 // n_heads]
    return weights[0, 0, 2], values, weighted_sum(weights[0, 0, 2], values, tokens, 2)


def test_the_rows_the_weights_and_the_sum_are_drawn():
    for n_heads in (1, 2):
        weights, values, drawing = drawn(n_heads)
        total = sum(weight * row for weight, row in zip(weights, values, strict=True))
        expected = {"values": values, "weights": weights, "sum": total}
        assert_drawn(drawing, expected, atol=0.01)


def test_the_flows_fill_the_row_that_they_make():
    _, _, drawing = drawn(1)
    for svg in (drawing.wide, drawing.narrow):
        torch.testing.assert_close(
            read_back(svg)["weights"].sum(), torch.tensor(1.0).double(), rtol=0, atol=0.002
        )
