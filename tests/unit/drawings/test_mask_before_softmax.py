"""The drawing shows the scores, and the weights of a row are those of its own and earlier words."""

import torch

from attention import causal_mask, running_example, split_heads
from attention.drawings import mask_before_softmax
from tests.unit.drawings.reading import assert_drawn


def test_each_row_is_the_softmax_of_what_it_may_see():
    example = running_example()
    q, k = (
        split_heads(layer(example.x), 2)[0, 1]
        for layer in (example.attention.w_q, example.attention.w_k)
    )
    scores = q @ k.mT / 2
    weights = torch.zeros(6, 6)
    for i in range(6):
        weights[i, : i + 1] = scores[i, : i + 1].softmax(dim=0)
    drawing = mask_before_softmax(scores, causal_mask(6), example.tokens[0])
    assert_drawn(drawing, {"scores": scores, "weights": weights}, atol=0.03)
    for svg in (drawing.wide, drawing.narrow):
        assert svg.count(">−∞<") == 15
