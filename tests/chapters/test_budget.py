"""A chapter runs where its readers are: on two cores in half a minute, in half of Binder's 2 GB."""

SECONDS = 30
MEMORY = 10**9


def test_a_chapter_keeps_to_its_time_and_memory(run, record_property):
    megabytes = f"{run.peak_memory / 1e6:.0f} MB" if run.peak_memory else "not told"
    taken = f"{megabytes:>8} {run.seconds:5.1f} s  {run.path.name}"
    record_property("taken", taken)
    assert run.seconds < SECONDS, taken
    assert run.peak_memory is None or run.peak_memory < MEMORY, taken
