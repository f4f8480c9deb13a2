"""The cut gives each head the columns that `split_heads` gives it."""

import torch

from attention import split_heads
from attention.drawings import cut_into_heads
from attention.example import running_example
from tests.unit.drawings.reading import assert_drawn


def test_each_head_has_its_columns():
    example = running_example()
    q = example.attention.w_q(example.x)[[1]]
    drawing = cut_into_heads(q[0], example.tokens[1], 2, lit=2)
    head_0, head_1 = split_heads(q, 2)[0]
    assert_drawn(drawing, {"Q": q[0], "head 0": head_0, "head 1": head_1}, atol=0.02)


def test_the_numbers_have_their_signs():
    drawing = cut_into_heads(torch.tensor([[1.5, -2.5]]), ["a"], 2, lit=0)
    for svg in (drawing.wide, drawing.narrow):
        assert svg.count(">1.5<") == svg.count(">−2.5<") == 2
