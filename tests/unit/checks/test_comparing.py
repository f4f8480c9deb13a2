"""What all that differs has in common is said, where the mistake has no name."""

import pytest
import torch

from attention.checks.comparing import difference
from attention.checks.inputs import Numbers

DUE = Numbers(0).tensor(3, 4, 5)
AXES = {"result": "batch seq d_model"}
PADDED = torch.cat([DUE[:2], DUE[2:] + DUE[:1]])
RULES = {
    "All of yours are 0.": torch.zeros(3, 4, 5),
    "All signs are the other way round.": -DUE,
    "All of yours are 1.5 times what is expected.": 1.5 * DUE,
    "The right numbers are all there, in other places": DUE.roll(1, dims=2),
    "All rows are off by the same vector.": DUE + torch.arange(5),
    "All are close": DUE.half().float() + 0.001,
    "Along batch it is right at [0, 1] and wrong at [2].": PADDED,
    "The axes stand in another order.": DUE.mT,
    "Axis by axis: seq is 3 long, and 4 is expected.": DUE[:, :3],
    "Yours has 2 axes, and 3 are expected.": DUE[0],
}


@pytest.mark.parametrize("words", RULES)
def test_what_differs_has_something_in_common(words):
    said = difference(AXES, (RULES[words],), (DUE,))
    assert words in said
    others = [other for other in RULES if other in said and other != words]
    assert not others
    assert words not in difference(AXES, (RULES[words],), (DUE,), rule=False)


def test_two_axes_of_one_name_are_told_apart():
    axes, due = {"result": "d_model d_model"}, Numbers(0).tensor(4, 4)
    wrong = torch.cat([due[:1], due[1:].roll(1, dims=0).mul(1.5)])
    assert "Along d_model (axis 0) it is right at [0] and wrong at [1, 2, 3]." in difference(
        axes, (wrong,), (due,)
    )
    said = difference(axes, (due[:3, :2],), (due,))
    assert "d_model (axis 0) is 3 long, and 4 is expected; d_model (axis 1) is 2 long" in said


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3)])
def test_numbers_that_have_nothing_in_common_are_told_as_they_are(shape):
    numbers = Numbers(1)
    yours, due = numbers.tensor(*shape), numbers.tensor(*shape)
    axes = {"result": " ".join("abc"[: len(shape)])}
    said = difference(axes, (yours,), (due,))
    assert said == difference(axes, (yours,), (due,), rule=False)


def test_a_single_number_has_no_place():
    due = torch.tensor(2.5)
    said = difference({"loss": ""}, (torch.tensor(2.0),), (due,))
    assert said == "your loss is 2.00, expected is 2.50."
    said = difference({"loss": ""}, (torch.tensor(torch.nan),), (due,))
    assert said == "your loss is nan, expected is 2.5."
    said = difference({"loss": ""}, (torch.ones(3),), (due,))
    assert "the shape of your loss is (3,), expected is () = a single number." in said
