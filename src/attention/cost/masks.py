"""One window asked for in five ways: what each took on one machine, a stored benchmark.

`python -m benchmarks.masks --store` measures again; the file names the machine and the sizes.
"""

import json
from pathlib import Path
from statistics import median

STORED = Path(__file__).with_name("masks.json")
ALL_PAIRS = "all pairs, torch's kernel"


def load_masks() -> dict[int, dict[str, float]]:
    """How many times as fast each way was as torch's causal kernel over all pairs.

    Returns:
        By number of tokens and by way, the median of the ratios within a round.

    Example:
        >>> from attention.cost.masks import load_masks
        >>> times = load_masks()[8192]
        >>> times["the same kernel, under the mask"] < 1 < times["FlexAttention, compiled"]
        True
    """
    stored = json.loads(STORED.read_text("utf-8"))["seconds"]
    return {
        int(n): {
            name: median(a / b for a, b in zip(each[ALL_PAIRS], own, strict=True))
            for name, own in each.items()
        }
        for n, each in stored.items()
    }
