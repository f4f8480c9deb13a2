"""The parts of each strip add up to the logit that the model reads out."""

import torch

from attention import running_example
from attention.drawings import logit_by_head
from attention.trained import who_and_whom
from tests.unit.drawings.reading import assert_drawn, read_back


def test_the_parts_add_up_to_the_logit():
    model, example = who_and_whom.load(8, 2), running_example()
    output, weights = model.attention(example.x)
    logit = model.read(output[:1], torch.tensor([2]))[0][0, example.vocabulary.ids["cat"]]
    row = model.to_who.weight[example.vocabulary.ids["cat"]]
    v = model.attention.w_v(example.x)[0].view(6, 2, 4)
    parts = [
        weights[0, r, 2] @ v[:, r] @ model.attention.w_o.weight[:, 4 * r : 4 * r + 4].T @ row
        for r in range(2)
    ]
    parts = torch.stack([*parts, logit - sum(parts)])
    assert parts[1] < 0  # head 1 takes something away
    drawing = logit_by_head(parts[None], [("saw", "who", "cat")])
    assert_drawn(drawing, {"saw who": parts}, atol=0.02)
    for svg in (drawing.wide, drawing.narrow):
        assert abs(read_back(svg)["saw who"].sum() - logit) < 0.03
        assert f">{logit:.2f}<" in svg
