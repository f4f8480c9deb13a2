"""Timing several computations side by side, so that a machine that slows down slows all of them."""

import random
import time

SECONDS_OF_SAMPLE = 0.02  # what is faster runs several times per sample


def sample(run, times=1):
    """Seconds of one run, the mean of so many."""
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times


def round_by_round(runs, *, least, most, seconds):
    """{name: seconds of every round}. In a round each runs once, in a new random order.

    runs: {name: function}. After `least` rounds no new one starts once `seconds` are over. The
    first run of each, which says how often it runs per sample, is its warm-up too.
    """
    times = {name: int(SECONDS_OF_SAMPLE / sample(run)) + 1 for name, run in runs.items()}
    measured = {name: [] for name in runs}
    order, start = list(runs), time.perf_counter()
    for done in range(most):
        if done >= least and time.perf_counter() - start > seconds:
            break
        random.shuffle(order)
        for name in order:
            measured[name].append(sample(runs[name], times[name]))
    return measured
