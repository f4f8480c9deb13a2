"""A step's two strips are as long as its reading and its arithmetic take."""

import pytest
import torch

from attention.drawings import decode_step
from tests.unit.drawings.reading import assert_drawn

BYTES = torch.tensor([[16_000, 1_000], [16_000, 34_000], [16_000, 0]])
FLOPS = torch.tensor([[16_000, 4_000], [512_000, 128_000], [64_000_000, 8_000_000]])
STEPS = ["one text", "32 texts", "prefill"]


def drawn(bytes_read):
    return decode_step(bytes_read, FLOPS, STEPS, bandwidth=4e6, peak=8e9)


def milliseconds():
    return {
        "read 0": torch.tensor([4.0, 0.25]),
        "compute 0": torch.tensor([0.002, 0.0005]),
        "read 1": torch.tensor([4.0, 8.5]),
        "compute 1": torch.tensor([0.064, 0.016]),
        "read 2": torch.tensor([4.0, 0.0]),
        "compute 2": torch.tensor([8.0, 1.0]),
    }


def test_the_strips_are_the_milliseconds():
    assert_drawn(drawn(BYTES), milliseconds())


def test_bytes_that_are_left_out_are_seen():
    with pytest.raises(AssertionError):
        assert_drawn(drawn(BYTES - torch.tensor([0, 500])), milliseconds())


def test_it_says_what_each_step_waits_for():
    told = drawn(BYTES).alt.split(". ")
    assert told[0] == (
        "One text: it reads 16 kB of weights and 1 kB of cache: 4.25 ms and computes 20 kFLOP: "
        "0.00 ms, so it waits for the memory"
    )
    assert told[2].startswith("Prefill: it reads 16 kB of weights: 4.00 ms and computes 72 MFLOP")
    assert told[1].endswith("the memory") and told[2].endswith("the arithmetic.")
    for svg in (drawn(BYTES).wide, drawn(BYTES).narrow):
        assert svg.count("waits for the memory") == 4  # two in the words for a screen reader
        assert svg.count("waits for the arithmetic") == 2
