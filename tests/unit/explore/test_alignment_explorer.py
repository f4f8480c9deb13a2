"""The frames of the alignment explorer: what the models write, and what each step gets."""

import numpy as np
import pytest
import torch

from attention.explore import alignment_explorer
from attention.explore.alignment import ATTENTIONS, DATES
from attention.trained.dates import (
    ANSWER,
    LETTERS,
    LONGEST,
    SIGN_NAMES,
    attention_of,
    encode,
    held_out_dates,
    load,
    right,
)

WRITTEN = {date.text: date for date in held_out_dates() if date.text in DATES}


@pytest.fixture(scope="module")
def explorer():
    return alignment_explorer()


def frames(explorer):
    """Every frame with the labels of its controls, its tensors unpacked."""
    numbers = np.frombuffer(explorer.view.numbers, "<f4")
    dates, attentions, _ = (control["options"] for control in explorer.view.controls)
    for place, frame in explorer.view.frames.items():
        date, attention = map(int, place.split(","))
        unpacked = {
            name: torch.tensor(
                numbers[x["at"] : x["at"] + np.prod(x["shape"])].reshape(x["shape"])
            ).double()
            for name, x in frame.items()
            if isinstance(x, dict) and "shape" in x
        }
        yield dates[date], attentions[attention], frame | unpacked


def test_the_dates_are_held_out_and_every_frame_is_there(explorer):
    assert set(WRITTEN) == set(DATES)
    assert len(explorer.view.frames) == len(DATES) * len(ATTENTIONS)
    assert [c["frame"] for c in explorer.view.controls] == [True, True, False]
    assert [c["name"] for c in explorer.view.controls] == ["sentence", "attention", "step"]


def test_the_page_has_what_it_needs_to_compute_a_date_of_the_readers_own(explorer):
    assert explorer.view.reads["kind"] == "date"
    assert explorer.view.reads["vocabulary"] == list(LETTERS.tokens)
    assert list(explorer.view.models) == list(ATTENTIONS)
    weights = np.frombuffer(explorer.view.weights, "<f2")
    for name, held in explorer.view.models.items():
        model = load(ATTENTIONS[name])
        assert held["decoder"] == type(model.decoder).__name__
        for part, tensor in model.state_dict().items():
            place = held[part]
            found = weights[place["at"] : place["at"] + tensor.numel()].reshape(place["shape"])
            np.testing.assert_array_equal(found, tensor.numpy(), err_msg=f"{name}: {part}")
    for _, _, frame in frames(explorer):
        assert frame["vocabulary"] == SIGN_NAMES and frame["longest"] == LONGEST


def test_a_frame_holds_what_the_model_writes_and_looks_at(explorer):
    for text, attention, frame in frames(explorer):
        date, model = WRITTEN[text], load(ATTENTIONS[attention]).double()
        letters, _ = encode([date])
        assert "".join(frame["tokens"]) == text and frame["iso"] == date.iso
        assert len(frame["signs"]) == ANSWER and frame["signs"][-1] == "end"
        assert ("".join(frame["signs"][:-1]) == date.iso) == bool(right(model, [date]))
        for name, (start, stop) in frame["said"].items():
            assert slice(start, stop) == getattr(date, name)
        with torch.no_grad():
            encoded = model.encoder(letters)[0]
        if "weights" in frame:
            torch.testing.assert_close(frame["context"][:, 0], frame["weights"] @ encoded)
            if right(model, [date]):  # then it was told the same signs as in training
                expected = attention_of(model, [date])[0, 0]
                torch.testing.assert_close(frame["weights"], expected, rtol=1e-5, atol=1e-6)
        else:
            half = encoded.shape[1] // 2
            last = torch.cat((encoded[-1, :half], encoded[0, half:]))
            assert len(frame["context"]) == ANSWER
            for row in frame["context"][:, 0]:
                torch.testing.assert_close(row, last, rtol=1e-5, atol=1e-6)


def test_only_the_last_state_has_no_weights(explorer):
    without = {attention for _, attention, frame in frames(explorer) if "weights" not in frame}
    assert without == {"none: the last state"}
