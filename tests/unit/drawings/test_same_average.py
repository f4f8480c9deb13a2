"""Both averages are drawn, each of its own four rows, and they agree."""

import torch

from attention.drawings import same_average
from attention.trained import who_and_whom
from attention.trained.who_and_whom import VOCABULARY
from tests.unit.drawings.reading import assert_drawn

SENTENCES = ["the sailor saw the doctor", "the doctor saw the sailor"]


@torch.no_grad()
def test_the_two_averages_are_those_of_x():
    model = who_and_whom.load(8, 1)
    words = model.embedding(VOCABULARY.encode_batch([["sailor", "doctor"]]))[0]
    seats = model.positional_encoding.table[[1, 4]]
    drawing = same_average(SENTENCES, [1, 4], words, seats)

    x = model.embed(VOCABULARY.encode_batch(SENTENCES))  # (sentence, seq, d_model)
    averages = (x[:, 1] + x[:, 4]) / 2
    sailor, doctor = words
    early, late = seats
    expected = {
        "first": torch.stack([sailor, early, doctor, late]) / 2,
        "first average": averages[[0]],
        "second": torch.stack([doctor, early, sailor, late]) / 2,
        "second average": averages[[1]],
    }
    assert_drawn(drawing, expected, atol=0.01)
    torch.testing.assert_close(averages[0], averages[1])


def test_the_words_are_named_in_each_sentences_order():
    drawing = same_average(SENTENCES, [1, 4], torch.eye(2), torch.ones(2, 2))
    assert "½ sailor, ½ seat 1, ½ doctor, ½ seat 4" in drawing.alt
    assert "½ doctor, ½ seat 1, ½ sailor, ½ seat 4" in drawing.alt
