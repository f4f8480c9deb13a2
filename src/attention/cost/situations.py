"""Training, prefill and decode: what the book's causal mechanisms took, a stored benchmark.

`python -m benchmarks.situations` measures again. Ratios compare mechanisms that ran in the same
run, side by side. On a GPU, PyTorch's kernel for all pairs is compiled and tuned, while the book's
mechanisms are plain PyTorch, and this difference decides more than the mechanism does.
"""

import json
from pathlib import Path
from statistics import median
from typing import NamedTuple

STORED = Path(__file__).with_name("situations.json")
ALL_PAIRS = "softmax, all pairs"


class TimesAsQuick(NamedTuple):
    """How many times as fast as torch's kernel over all pairs: the median and range of the runs."""

    median: float
    least: float
    most: float


class Situations(NamedTuple):
    """One machine's runs.

    Attributes:
        setting: torch's version, the machine and the sizes, in words.
        seconds: by situation, number of tokens and mechanism, those of every run.
    """

    setting: str
    seconds: dict[str, dict[int, dict[str, list[float]]]]

    def times_as_quick(self, situation: str, n: int) -> dict[str, TimesAsQuick]:
        """Compare each mechanism with all pairs, run by run.

        Args:
            situation: "training", "prefill" or "decode".
            n: how many tokens, one of the stored numbers.

        Raises:
            ValueError: nothing of the kind is stored.
        """
        known = {which: list(each) for which, each in self.seconds.items()}
        if n not in known.get(situation, ()):
            raise ValueError(f"situation={situation!r} with n={n} is not stored; there are {known}")
        seconds = self.seconds[situation][n]
        ratios = {
            name: [a / b for a, b in zip(seconds[ALL_PAIRS], each, strict=True)]
            for name, each in seconds.items()
        }
        return {
            name: TimesAsQuick(median(each), min(each), max(each)) for name, each in ratios.items()
        }


def load_situations(device: str = "cuda") -> Situations:
    """Load the stored runs of one machine.

    Args:
        device: "cuda", one GPU in bfloat16, or "cpu", eight threads in float32.

    Raises:
        ValueError: nothing is stored for that device.

    Example:
        >>> from attention.cost.situations import load_situations
        >>> times = load_situations().times_as_quick("decode", 65536)
        >>> times["window 256 and 4 sinks"].median > 2  # 261 keys beside 65,536
        True
    """
    stored = json.loads(STORED.read_text("utf-8"))
    if device not in stored:
        raise ValueError(f"device must be one of {', '.join(stored)}, got {device!r}")
    seconds = {
        situation: {int(n): each for n, each in by_length.items()}
        for situation, by_length in stored[device]["seconds"].items()
    }
    return Situations(stored[device]["setting"], seconds)
