"""The cells go where `merge_heads` puts their numbers, and where a reshape alone does."""

import torch

from attention import merge_heads
from attention.drawings import merges, merging
from tests.unit.drawings.reading import assert_drawn

TOKENS = ["the", "cat", "saw", "the", "other", "cat"]
TOKEN = torch.arange(1.0, 7)[:, None].expand(2, 6, 4)  # each number names its token, from 1


def test_the_rows_stay_and_the_memory_is_copied():
    before = TOKEN.flatten()
    after = merge_heads(TOKEN[None]).flatten()
    assert not torch.equal(before, after)
    steps = merging((2, 6, 4), TOKENS)
    for drawing, memory in zip(steps.values(), (before, before, after), strict=True):
        expected = {"head 0": TOKEN[0], "head 1": TOKEN[1], "memory": memory}
        assert_drawn(drawing, expected, atol=0.001)


def test_the_mistake_keeps_the_shape_and_mixes_tokens():
    drawing = merges((2, 6, 4), TOKENS, 2)
    right = merge_heads(TOKEN[None])[0]
    wrong = TOKEN.reshape(6, 8)
    expected = {"transpose, then reshape": right, "reshape alone": wrong}
    assert_drawn(drawing, expected, atol=0.001)
    assert "token 4, “other”, of head 0 and token 5, “cat”, of head 0: a mistake" in drawing.alt


def test_the_colours_are_the_heads():
    looks = [
        [f"head-{h}" in part for h in range(2)]
        for part in merges((2, 6, 4), TOKENS, 2).wide.split("<rect")
        if "head-" in part.split(">")[0]
    ]
    heads = torch.tensor(looks).int().argmax(dim=1).view(2, 6, 8)
    named = torch.arange(2.0)[:, None, None].expand(2, 6, 4)
    assert torch.equal(heads[0], merge_heads(named[None])[0].int())
    assert torch.equal(heads[1], named.reshape(6, 8).int())
