"""One window asked for in five ways: what each took on one machine, a stored benchmark.

`python -m benchmarks.masks --store` measures anew.
"""

import json
from pathlib import Path
from statistics import median
from typing import NamedTuple

STORED = Path(__file__).with_name("masks.json")
ALL_PAIRS = "all pairs, torch's kernel"


class Masks(NamedTuple):
    """The runs of one machine.

    Attributes:
        setting: torch's version, the kind of machine and the sizes, in words.
        times_as_quick: by number of tokens and way, how many times as quick as torch's causal
            kernel over all pairs; the median of the ratios within a round.
    """

    setting: str
    times_as_quick: dict[int, dict[str, float]]


def load_masks() -> Masks:
    """Load the stored runs.

    Example:
        >>> from attention.cost.masks import load_masks
        >>> times = load_masks().times_as_quick[8192]
        >>> times["the same kernel, under the mask"] < 1 < times["FlexAttention, compiled"]
        True
    """
    stored = json.loads(STORED.read_text("utf-8"))
    quick = {
        int(n): {
            name: median(a / b for a, b in zip(each[ALL_PAIRS], own, strict=True))
            for name, own in each.items()
        }
        for n, each in stored["seconds"].items()
    }
    return Masks(stored["setting"], quick)
