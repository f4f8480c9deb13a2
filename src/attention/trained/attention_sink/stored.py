"""The trained weights that the book shows, and what five seeds of each kind reached."""

from pathlib import Path

from attention.trained import weight_files
from attention.trained.attention_sink.evaluation import measure
from attention.trained.attention_sink.model import LAYERS, STORED, SinkModel
from attention.trained.attention_sink.training import train

WEIGHTS = Path(__file__).parent / "weights"
TABLE = WEIGHTS / "five-seeds.safetensors"
SEEDS = range(5)


def load(layer: str = "plain") -> SinkModel:
    """Load a trained model, in evaluation mode.

    Args:
        layer: one of `STORED`.

    Raises:
        ValueError: no weights are stored for that kind of layer.

    Example:
        >>> from attention.trained.attention_sink import load
        >>> load("learned-sink").training
        False
    """
    if layer not in STORED:
        raise ValueError(
            f"no weights are stored for layer={layer!r}; it can be {', '.join(STORED)}"
        )
    return weight_files.load(lambda: SinkModel(layer), WEIGHTS / f"{layer}.safetensors")


def measured(layer: str = "plain") -> list[dict]:
    """Read what `measure` returned for the models of seeds 0 to 4, one after the other.

    Example:
        >>> from attention.trained.attention_sink import measured
        >>> all(max(one["weight_of_first"][1]) > 0.7 for one in measured("plain"))
        True
    """
    if layer not in LAYERS:
        raise ValueError(f"layer must be one of {', '.join(LAYERS)}, got {layer!r}")
    return weight_files.metadata(TABLE)[layer]


def train_table(*, dry_run: bool) -> None:
    """Train the other seeds as well, print what each reaches, and store the table."""
    table = {}
    for layer in LAYERS:
        table[layer] = [measure(train(layer, seed)) for seed in SEEDS]
        for seed, one in zip(SEEDS, table[layer], strict=True):
            print(f"{layer}, seed {seed}: {one}", flush=True)
    if not dry_run:
        weight_files.write(TABLE, {}, **table)
