"""What every mechanism took on one machine: a run of the benchmark, stored with the package.

Seconds belong to the machine that they were measured on. Ratios between mechanisms that ran in the
same round, and the exponent with which a time grows, say more about another machine.
"""

import json
from pathlib import Path
from typing import NamedTuple

STORED = Path(__file__).with_name("measured.json")


class Measured(NamedTuple):
    """One run of `python -m benchmarks.family`.

    Attributes:
        setting: torch's version, the kind of machine and the sizes, in words.
        seconds: by mechanism and number of tokens, the median over the rounds. What would have
            needed more than 60 s or 12 GB was left out.
        peak_bytes: the memory above the inputs, likewise.
        exponent: by mechanism, e in time = c · nᵉ, fitted to the last three sizes.
        times_as_quick: by mechanism, how many times as fast as torch's fused kernel at the largest
            size, the median of the ratios within a round.
    """

    setting: str
    seconds: dict[str, dict[int, float]]
    peak_bytes: dict[str, dict[int, int]]
    exponent: dict[str, float]
    times_as_quick: dict[str, float]


def load_measured() -> Measured:
    """Load the stored run.

    Example:
        >>> from attention.cost.measured import load_measured
        >>> exponent = load_measured().exponent
        >>> round(exponent["dense, torch's fused kernel"]), round(exponent["linear"])
        (2, 1)
    """
    stored = json.loads(STORED.read_text("utf-8"))
    seconds, peak_bytes = (
        {name: {int(n): x for n, x in each.items()} for name, each in stored[kind].items()}
        for kind in ("seconds", "peak_bytes")
    )
    [times_as_quick] = stored["times_as_quick_as_dense"].values()
    return Measured(
        stored["setting"], seconds, peak_bytes, stored["exponent_of_time"], times_as_quick
    )
