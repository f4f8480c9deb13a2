"""The explorer of a layer's parts: own sentences, and frames as the modules compute them."""

import numpy as np
import pytest
import torch

from attention.explore import layer_explorer
from attention.trained import relative_clauses
from attention.trained.relative_clauses import VOCABULARY, accuracy_by_kind, new_clauses
from attention.trained.without_parts import rows_by_sublayer, spread, without_parts


def stored(explorer, place):
    numbers = np.frombuffer(explorer.view.numbers, "<f4")
    size = int(np.prod(place["shape"]))
    return torch.tensor(numbers[place["at"] : place["at"] + size].reshape(place["shape"]))


@pytest.mark.slow  # measures sixteen models
def test_a_frame_holds_what_the_models_compute():
    explorer = layer_explorer("The king that an owl followed knew the girl")
    tokens = ["the", "king", "that", "an", "owl", "followed", "knew", "the", "girl"]
    ids = VOCABULARY.encode_batch([tokens])
    assert len(explorer.view.frames) == 16

    whole = explorer.view.frames["1,1,1,1"]
    assert whole["tokens"] == tokens and whole["places"] == [5, 6]
    assert (whole["who"], whole["whom"]) == (["<unk>", "king"], ["king", "girl"])
    assert whole["right"] > 0.999

    for key, n_layers, parts in [
        ("0,1,0,1", 1, ["layer norm"]),
        ("1,0,1,0", 2, ["residual", "feed-forward"]),
        ("1,1,1,0", 2, ["feed-forward"]),
    ]:
        held = explorer.view.frames[key]
        model = without_parts(relative_clauses.load(n_layers).double(), *parts)
        with torch.no_grad():
            answer = model(ids)
        who = answer.who[0, [5, 6]].softmax(-1)
        assert held["who"] == VOCABULARY.decode(who.argmax(-1))
        torch.testing.assert_close(stored(explorer, held["sure"])[:, 0], who.amax(-1).float())
        weights = torch.cat(answer.weights).float()
        torch.testing.assert_close(stored(explorer, held["weights"]), weights)
        x = model.positional_encoding(model.embedding(ids))
        apart = torch.cat([spread(rows) for rows in rows_by_sublayer(model.encoder, x)])
        torch.testing.assert_close(stored(explorer, held["spread"])[:, 0], apart.float())
        right = accuracy_by_kind(model, new_clauses())["all"]
        assert held["right"] == pytest.approx(right, abs=1e-4)
