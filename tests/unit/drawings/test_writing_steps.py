"""The letters flow into each step by the cross-attention of the trained transformer."""

import html
import re

import pytest
import torch

from attention.drawings import writing_steps
from attention.trained.dates import LETTERS, SIGN_NAMES, START, load
from tests.unit.drawings.reading import assert_drawn

DATE = "sunday, march the 4th 1973"


@torch.no_grad()
def written():
    """What the model writes by itself, and where its heads look on average, one step at a time."""
    model = load("transformer").double().transformer
    letters = LETTERS.encode_batch([list(DATE)])
    memory, _ = model.encode(letters)
    ids, weights = [START], []
    for _ in range(11):
        logits, _, cross = model.decode(torch.tensor([ids]), memory, letters)
        weights.append(sum(cross[0][0, head, -1] for head in range(4)) / 4)
        ids.append(int(logits[0, -1].argmax()))
    return [SIGN_NAMES[i] for i in ids[1:]], torch.stack(weights)


def test_each_step_shows_its_own_weights_and_sign():
    signs, weights = written()
    assert signs == [*"1973-03-04", "end"]
    reads, *steps = writing_steps(DATE, signs, weights).items()
    assert reads[0] == "0: reads" and len(steps) == 11
    assert_drawn(reads[1], {})
    for nth, (name, drawing) in enumerate(steps):
        assert name == f"{nth + 1}: writes {signs[nth]}"
        assert_drawn(drawing, {"weights": weights[nth]})
        for svg in (drawing.wide, drawing.narrow):
            words = [html.unescape(each) for each in re.findall(r'y="274[^>]*>([^<]*)</text', svg)]
            assert [each for each in words if each != "signs"] == ["<start>", *signs[: nth + 1]]


def test_letters_with_much_weight_are_named():
    signs, weights = written()
    steps = writing_steps(DATE, signs, weights)
    month = weights[6]
    named = ", ".join(f"{DATE[j]} {month[j]:.2f}" for j in range(8, 12))
    assert (month >= 0.1).nonzero()[:, 0].tolist() == [8, 9, 10, 11]
    for words in (steps["7: writes 3"].wide, steps["7: writes 3"].narrow):
        assert f">looks most at {named}<" in words
    assert "looks at the rows of the letters, most at " + named in steps["7: writes 3"].alt


def test_another_steps_weights_are_seen():
    signs, weights = written()
    steps = writing_steps(DATE, signs, weights)
    with pytest.raises(AssertionError):
        assert_drawn(steps["7: writes 3"], {"weights": weights[5]})
