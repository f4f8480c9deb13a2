"""The stored runs of the three situations, and how they are compared."""

import statistics

import pytest

from attention.cost.situations import ALL_PAIRS, load_situations

RUN = load_situations()


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_every_situation_has_five_runs_of_every_mechanism(device):
    run = load_situations(device)
    assert list(run.seconds) == ["training", "prefill", "decode"]
    for lengths in run.seconds.values():
        names = list(lengths[1024])
        assert ALL_PAIRS in names and len(names) >= 7
        for each in lengths.values():  # what would take too long is left out
            assert set(each) <= set(names) and ALL_PAIRS in each
            assert {len(runs) for runs in each.values()} == {5}
    assert "5 runs" in run.setting


def test_a_ratio_is_taken_within_a_run():
    seconds = RUN.seconds["prefill"][65536]
    times = RUN.times_as_quick("prefill", 65536)
    assert times[ALL_PAIRS] == (1, 1, 1)
    for name, one in times.items():
        own = [a / b for a, b in zip(seconds[ALL_PAIRS], seconds[name], strict=True)]
        assert one == (statistics.median(own), min(own), max(own))


def test_what_is_not_stored_says_what_is():
    with pytest.raises(ValueError, match="situation='decode' with n=7 is not stored; there are"):
        RUN.times_as_quick("decode", 7)
    with pytest.raises(ValueError, match="device must be one of cuda, cpu, got 'tpu'"):
        load_situations("tpu")
