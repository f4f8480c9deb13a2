"""The strips are the weights, and the number under the pads is what the words lack."""

import torch

from attention.drawings import weight_on_pads
from attention.trained.who_and_whom import VOCABULARY, load
from tests.unit.drawings.reading import assert_drawn

WORDS = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "chased", "the", "cat"]


def test_each_length_has_its_weights():
    model, rows = load(8, 2), {}
    for length in (11, 14):
        padded = WORDS + ["<pad>"] * (length - 11)
        _, weights = model.attention(model.embed(VOCABULARY.encode_batch([padded])))
        rows[f"{length} tokens"] = weights[0, 0, 8]
    drawing = weight_on_pads(list(rows.values()), WORDS, query=8, head=0)
    assert_drawn(drawing, rows, atol=0.001)
    on_words = rows["14 tokens"][:11].sum()
    for svg in (drawing.wide, drawing.narrow):
        assert f">on 3 pads: {1 - on_words:.2f}<" in svg
    assert f"{1 - on_words:.2f} of it on 3 pads" in drawing.alt
    assert f"{1 - on_words:.2f}" == "0.81"


def test_a_length_without_pads_has_no_mark():
    alone = weight_on_pads([torch.tensor([0.25, 0.75])], ["birds", "sing"], query=1, head=0)
    assert "mistake fill" not in alone.wide
