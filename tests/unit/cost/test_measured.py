"""The stored run of the benchmark says of each mechanism what the chapters print."""

import statistics
from math import log

from attention.cost.measured import load_measured

DENSE = "dense, torch's fused kernel"


def test_every_mechanism_has_its_numbers():
    measured = load_measured()
    assert measured.seconds.keys() == measured.exponent.keys()
    # Its memory alone: in the rounds it would slow the others, which it shares the machine with.
    assert measured.peak_bytes.keys() - measured.seconds.keys() == {"dense, weights held"}
    for name, seconds in measured.seconds.items():
        assert seconds and all(s > 0 for s in seconds.values()), name
        assert seconds.keys() <= measured.peak_bytes[name].keys(), name
    assert measured.setting.startswith("torch ")


def test_ratios_are_those_of_the_times():
    """Within a third: one is the median of ratios, the other the ratio of medians."""
    seconds, largest = load_measured().seconds, max(load_measured().seconds[DENSE])
    for name, ratio in load_measured().times_as_quick.items():
        of_medians = seconds[DENSE][largest] / seconds[name][largest]
        assert 0.67 < ratio / of_medians < 1.5, name


def test_exponents_are_the_slopes_of_the_times():
    for name, seconds in load_measured().seconds.items():
        ns = sorted(seconds)[-3:]
        line = statistics.linear_regression([log(n) for n in ns], [log(seconds[n]) for n in ns])
        assert abs(line.slope - load_measured().exponent[name]) < 0.01, name
