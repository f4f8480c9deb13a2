"""The explorer of the writing transformer: its frames are what the model computes."""

import numpy as np
import torch

from attention.explore import writing_explorer
from attention.explore.writing import DATES
from attention.trained.dates import LETTERS, SIGNS, START, load


def test_a_frame_holds_what_the_model_computes():
    view = writing_explorer().view
    numbers = np.frombuffer(view.numbers, "<f4")

    def stored(place):
        size = int(np.prod(place["shape"]))
        return torch.tensor(numbers[place["at"] : place["at"] + size].reshape(place["shape"]))

    model = load("transformer").requires_grad_(False)
    for text, held in zip(DATES, view.frames.values(), strict=True):
        letters = LETTERS.encode_batch([list(text)])
        signs = model.write(letters)
        before = torch.cat([torch.tensor([[START]]), signs[:, :-1]], dim=1)
        output = model.transformer(letters, before)
        assert held["tokens"] == list(text)
        assert held["signs"] == [sign.strip("<>") for sign in SIGNS.decode(signs[0])]
        weights = {
            "encoder": output.encoder_weights[0][0],
            "own": output.self_weights[0][0],
            "cross": output.cross_weights[0][0],
        }
        for name, heads in weights.items():
            found = stored(held[name])
            torch.testing.assert_close(found[:-1], heads, rtol=0, atol=1e-4)
            torch.testing.assert_close(found[-1], heads.mean(0), rtol=0, atol=1e-4)
        shares = output.logits[0].softmax(-1)
        torch.testing.assert_close(stored(held["shares"]), shares, rtol=0, atol=1e-4)
    assert set(view.models) == {"transformer"}
    assert view.reads["vocabulary"] == list(LETTERS.tokens)
