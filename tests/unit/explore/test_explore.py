"""Explorers outside the book: own sentences, own sizes, and frames as the module computes them."""

import inspect

import numpy as np
import pytest
import torch

import attention.explore
from attention import MultiHeadAttention
from attention.example import running_example
from attention.explore import multihead_explorer, splitting_explorer
from attention.masks import padding_mask

EXPLORERS = [getattr(attention.explore, name) for name in attention.explore.__all__]
SIZES = {"d_models": (6, 10), "n_heads": (5, 7, 2, 3)}


def own(make):
    """An explorer of sentences and sizes that no chapter uses."""
    sizes = {name: SIZES[name] for name in SIZES if name in inspect.signature(make).parameters}
    return make(["You can write any sentence here", "yes"], **sizes)


@pytest.fixture(autouse=True)
def _caller_keeps_its_random_numbers():
    before = torch.random.get_rng_state()
    yield
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("make", EXPLORERS)
def test_takes_own_sentences_and_sizes(make):
    explorer = own(make)
    widths = [int(label) for label in options(explorer, "d_model")]
    assert widths == [6, 10]
    assert explorer.view.frames and len(explorer.view.numbers) % 4 == 0
    assert "image/png" in explorer._repr_mimebundle_()[0]


def options(explorer, name):
    return next(c["options"] for c in explorer.view.controls if c["name"] == name)


def frame(explorer, **labels):
    """The stored frame at the places where the controls have these labels."""
    places = [
        control["options"].index(labels[control["name"]])
        for control in explorer.view.controls
        if control["frame"]
    ]
    return explorer.view.frames[",".join(map(str, places))]


def stored(explorer, place):
    numbers = np.frombuffer(explorer.view.numbers, "<f4")
    size = int(np.prod(place["shape"]))
    return torch.tensor(numbers[place["at"] : place["at"] + size].reshape(place["shape"]))


def test_a_frame_holds_what_the_module_computes():
    sentences = ["you can write any sentence here", "yes"]
    explorer = multihead_explorer(sentences, seed=3)
    held = frame(explorer, sentence="yes", d_model="12", n_heads="6")

    example = running_example(12, sentences, seed=3)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(3)
        module = MultiHeadAttention(12, 6)
        output, weights = module(example.x, mask=padding_mask(example.token_ids, 0))
    assert held["tokens"] == ["yes", *["<pad>"] * 5]
    torch.testing.assert_close(stored(explorer, held["weights"]), weights[1])
    torch.testing.assert_close(stored(explorer, held["output"]), output[1])


def test_a_forbidden_pair_holds_the_modules_message():
    explorer = splitting_explorer()
    for label in options(explorer, "sentence"):
        held = frame(explorer, sentence=label, d_model="12", n_heads="8")
        assert held == {
            "error": "n_heads=8 does not divide d_model=12; it can be 1, 2, 3, 4, 6 or 12"
        }


def test_sizes_without_an_allowed_pair_are_refused():
    with pytest.raises(ValueError, match=r"no count of n_heads=\(3,\) divides .* d_models=\(4,\)"):
        splitting_explorer(d_models=(4,), n_heads=(3,))
