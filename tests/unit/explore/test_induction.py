"""The induction explorer: what its frames hold, and what it refuses."""

import numpy as np
import pytest
import torch

from attention.explore import induction_explorer
from attention.trained import induction
from attention.trained.induction import SYMBOLS, encode


def held(explorer, layers):
    at = explorer.controls["layers"].options.index(layers)
    numbers = np.frombuffer(explorer.view.numbers, "<f4")
    frame = dict(explorer.view.frames[str(at)])
    for name, place in frame.items():
        if isinstance(place, dict):
            flat = numbers[place["at"] : place["at"] + int(np.prod(place["shape"]))]
            frame[name] = torch.tensor(flat.reshape(place["shape"]))
    return frame


@pytest.mark.parametrize("layers", [1, 2])
def test_a_frame_holds_the_weights_of_every_layer_and_the_shares(layers):
    frame = held(induction_explorer("thecatsawthec", query=12), layers)
    logits, weights = induction.load(layers)(encode("thecatsawthec"))
    assert frame["tokens"] == list("thecatsawthec")
    assert {name for name in frame if name.startswith("layer")} == {
        f"layer{i}" for i in range(layers)
    }
    for i, expected in enumerate(weights):
        torch.testing.assert_close(frame[f"layer{i}"], expected[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(frame["shares"], logits[0].softmax(-1), atol=1e-5, rtol=1e-5)


def test_it_starts_where_the_answer_is_what_followed_last_time():
    explorer = induction_explorer()
    query, frame = explorer.controls["query"].value, held(explorer, 2)
    tokens = frame["tokens"]
    assert len(tokens) == len(explorer.controls["query"].options), "each place of the slider counts"
    last = max(j for j in range(query) if tokens[j] == tokens[query])
    assert SYMBOLS[frame["shares"][query].argmax()] == tokens[last + 1] == tokens[query + 1]


@pytest.mark.parametrize(
    ("sequence", "query", "words"),
    [
        ("the cat", 0, "text holds ' ', which is no token; the tokens are a to z and 0 to 5"),
        ("a" * 33, 0, "text must have 1 to 32 symbols, got 33"),
        ("", 0, "text must have 1 to 32 symbols, got 0"),
        ("abc", 3, "query=3 must be a place of the sequence, 0 to 2; 'abc' has 3 tokens"),
    ],
)
def test_what_is_no_sequence_is_refused(sequence, query, words):
    with pytest.raises(ValueError, match=words):
        induction_explorer(sequence, query)
