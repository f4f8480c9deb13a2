"""The states, the last two of them, and the weights of one step are those of the model."""

import pytest
import torch

from attention.drawings import readers_and_writer
from attention.trained.dates import ANSWER, END, SIGN_NAMES, START, encode, held_out_dates, load
from tests.unit.drawings.reading import assert_drawn, read_back

DATE = next(date for date in held_out_dates() if date.iso == "1916-05-26")
RIGHT = [*DATE.iso, "end"]


@torch.no_grad()
def read_and_written(name):
    model = load(name).double()
    encoded = model.encoder(encode([DATE])[0])
    ids, weights = model.decoder.greedy(encoded, start_id=START, end_id=END, max_length=ANSWER)
    return encoded[0], [SIGN_NAMES[sign] for sign in ids[0]], weights[0]


def columns(encoded, name, half):
    """One of the readers' rows, each number by its place."""
    rows = range(half) if name == "from the left" else range(half, 2 * half)
    return torch.stack([encoded[:, row] for row in rows])


def test_the_neck_is_where_each_reader_has_read_everything():
    encoded, signs, _ = read_and_written("narrow-last-state")
    drawing = readers_and_writer(DATE.text, encoded, signs, RIGHT)
    expected = {name: columns(encoded, name, 6) for name in ("from the left", "from the right")}
    expected["last states"] = torch.cat([encoded[0, 6:], encoded[28, :6]])
    assert_drawn(drawing, expected)
    wrong = sum(a != b for a, b in zip(signs, RIGHT, strict=True))
    assert wrong == 2 and "wrong at 2 of 11" in drawing.alt
    for svg in (drawing.wide, drawing.narrow):
        assert svg.count(">×<") == 2 and svg.count("mistake of bold") == 2


@pytest.mark.parametrize("step", [0, 6])
def test_each_letter_flows_into_the_step_by_its_weight(step):
    encoded, signs, weights = read_and_written("narrow-additive")
    drawing = readers_and_writer(DATE.text, encoded, signs, RIGHT, weights[step], step)
    expected = {name: columns(encoded, name, 6) for name in ("from the left", "from the right")}
    assert_drawn(drawing, expected | {"weights": weights[step]}, atol=0.02)
    assert f"{weights[step].max():.2f} from letter {weights[step].argmax()}, " in drawing.alt
    for svg in (drawing.wide, drawing.narrow):
        torch.testing.assert_close(
            read_back(svg)["weights"].sum(), torch.tensor(1.0).double(), rtol=0, atol=0.01
        )
        # Before the first step no state has been written that could stand beside the question.
        assert (">asks<" in svg) == (step > 0)


def test_another_steps_weights_are_seen():
    encoded, signs, weights = read_and_written("narrow-additive")
    drawing = readers_and_writer(DATE.text, encoded, signs, RIGHT, weights[6], 6)
    expected = {name: columns(encoded, name, 6) for name in ("from the left", "from the right")}
    with pytest.raises(AssertionError):
        assert_drawn(drawing, expected | {"weights": weights[7]})
