"""Triangles and states together are causal attention without softmax."""

import pytest
import torch

from attention.drawings import chunk_by_chunk
from tests.unit.drawings.reading import assert_drawn

TOKENS = ["a", "b", "c", "d", "e", "f"]


def drawn(chunk):
    torch.manual_seed(0)
    query, key, value = torch.rand(6, 4), torch.rand(6, 4), torch.randn(6, 3)
    return (query, key, value), chunk_by_chunk(query, key, value, TOKENS, chunk)


@pytest.mark.parametrize("chunk", [2, 3, 6])
def test_every_number_is_one_of_the_whole_text(chunk):
    (query, key, value), drawing = drawn(chunk)
    weights, expected = (query @ key.T).tril(), {}
    for nth, first in enumerate(range(0, 6, chunk), start=1):
        own = slice(first, first + chunk)
        expected[f"chunk {nth}"] = weights[own, own]
        expected[f"state {nth}"] = key[: own.stop].T @ value[: own.stop]
    assert_drawn(drawing, expected)


@pytest.mark.parametrize("chunk", [2, 3])
def test_triangles_and_states_make_the_outputs(chunk):
    (query, key, value), drawing = drawn(chunk)
    shown = {name: tensor.float() for name, tensor in drawing.values.items()}
    outputs, state = [], torch.zeros(4, 3)
    for nth, (q, v) in enumerate(zip(query.split(chunk), value.split(chunk), strict=True), start=1):
        outputs.append(q @ state + shown[f"chunk {nth}"] @ v)
        state = shown[f"state {nth}"]
    torch.testing.assert_close(torch.cat(outputs), (query @ key.T).tril() @ value)


def test_the_words_name_the_chunks():
    _, drawing = drawn(3)
    assert "6 tokens in chunks of 3: a, b, c; d, e, f." in drawing.alt
    assert "one state of 12 numbers" in drawing.alt
