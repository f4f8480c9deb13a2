"""The bars of the heads and the bias add up to the row that the module puts out."""

import torch

from attention import running_example
from attention.drawings import heads_add
from tests.unit.drawings.reading import assert_drawn, read_back


def test_the_bars_add_up_to_the_output():
    example = running_example()
    attention = example.attention
    output, weights = attention(example.x)
    v = attention.w_v(example.x)[0].view(6, 2, 4)
    results = torch.stack([weights[0, r, 2] @ v[:, r] for r in range(2)])
    # What a head writes: the output with the other head at zero, less the bias.
    alone = torch.zeros(2, 8)
    alone[0, :4], alone[1, 4:] = results[0], results[1]
    wrote = attention.w_o(alone) - attention.w_o.bias
    drawing = heads_add(results, wrote, attention.w_o.bias, "saw")
    expected = {"head 0": results[0], "head 1": results[1], "head 0 wrote": wrote[0]}
    expected |= {
        "head 1 wrote": wrote[1],
        "bias": attention.w_o.bias,
        "sum": wrote.sum(dim=0) + attention.w_o.bias,
    }
    assert_drawn(drawing, expected, atol=0.02)
    torch.testing.assert_close(expected["sum"], output[0, 2], rtol=0, atol=1e-4)
    for svg in (drawing.wide, drawing.narrow):
        found = read_back(svg)
        parts = found["head 0 wrote"] + found["head 1 wrote"] + found["bias"]
        torch.testing.assert_close(parts, found["sum"], rtol=0, atol=0.05)
