"""The explorer of three situations: its numbers are the stored runs'; a length is refused."""

from statistics import median

import pytest

from attention.cost.situations import load_situations
from attention.explore import situations_explorer
from attention.explore.situations import LENGTHS, MACHINES, SITUATIONS
from tests.unit.explore.test_explore import frame, stored

ALL_PAIRS = "softmax, all pairs"


@pytest.fixture(scope="module")
def explorer():
    return situations_explorer()


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_its_numbers_are_those_of_the_runs(explorer, situation, machine, n):
    seconds = load_situations(MACHINES[machine]).seconds[situation]
    held = frame(explorer, situation=situation, machine=machine, n=str(n))
    if n not in seconds:
        assert held["error"] == f"{situation} with n={n:,} was not timed; choose at most 16,384"
        return
    dense = seconds[n].pop(ALL_PAIRS)
    assert held["names"] == list(seconds[n])
    assert not {*held["names"], ALL_PAIRS} & {*held["untimed"]}
    for r, runs in enumerate(seconds[n].values()):
        quick = [a / b for a, b in zip(dense, runs, strict=True)]
        for name, of in (("medians", median), ("least", min), ("most", max)):
            assert stored(explorer, held[name])[r].tolist() == pytest.approx([of(quick)])


def test_every_mechanism_is_timed_or_named_as_untimed(explorer):
    every = set(frame(explorer, situation="training", machine="GPU", n="1024")["names"])
    every |= {"latent rows, 256 + 32"}
    for held in explorer.view.frames.values():
        if "error" not in held:
            assert {*held["names"], *held["untimed"]} == every
