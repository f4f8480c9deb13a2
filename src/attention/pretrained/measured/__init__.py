"""Stored measurements of SmolLM2-135M: `python -m attention.pretrained` makes them again.

Each file holds what one function of `__main__` returned.
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def load_measured(name: str) -> Any:
    """Load one stored measurement.

    Args:
        name: of the measurement: "mistakes", "cache_bits" …

    Raises:
        ValueError: nothing of this name is stored.

    Example:
        >>> from attention.pretrained.measured import load_measured
        >>> prices = load_measured("mistakes")["prices"]
        >>> prices["KV heads dealt out"]["story"]["loss"] > prices["none"]["story"]["loss"] + 5
        True
    """
    path = HERE / f"{name}.json"
    if not path.exists():
        can_be = ", ".join(sorted(each.stem for each in HERE.glob("*.json")))
        raise ValueError(f"name={name!r} is not stored; it can be one of: {can_be}")
    return json.loads(path.read_text("utf-8"))


def loss_range(mistake: str) -> tuple[float, float]:
    """SmolLM2's least and largest loss with a mistake in all its layers, over four texts, in nats.

    Args:
        mistake: of `attention.pretrained.mistakes.MISTAKES`; "none" for the model as it is.

    Raises:
        ValueError: there is no such mistake.

    Example:
        >>> from attention.pretrained.measured import loss_range
        >>> least, most = loss_range("no divisor")
        >>> least > loss_range("none")[1]
        True
    """
    prices = load_measured("mistakes")["prices"]
    if mistake not in prices:
        raise ValueError(f"mistake={mistake!r} must be one of {', '.join(map(repr, prices))}")
    losses = [text["loss"] for text in prices[mistake].values()]
    return min(losses), max(losses)


def store(name: str, measured: Any) -> None:
    """Store one measurement over the last one, with four digits after the point."""
    text = json.dumps(rounded(measured), ensure_ascii=False, separators=(",", ":"))
    (HERE / f"{name}.json").write_text(text + "\n", "utf-8")


def rounded(x: Any) -> Any:
    if isinstance(x, dict):
        return {name: rounded(each) for name, each in x.items()}
    if isinstance(x, list):
        return [rounded(each) for each in x]
    return round(x, 4) if isinstance(x, float) else x
