"""The trained date models that the book shows: loaded by name, or all trained anew.

One small file for each stands in `date_weights`, with seed 0 in half precision, and with what was
measured of it.
"""

import time
from pathlib import Path

import torch

from attention.trained import weight_files
from attention.trained.date_models import MODELS, RecurrentDates, TransformerDates
from attention.trained.date_training import LENGTHS, Measured, measure, train
from attention.trained.dates import Alignment, alignment, held_out_dates
from attention.trained.fitting import build

WEIGHTS = Path(__file__).parent / "date_weights"
SEEDS = range(3)


def load_date_model(name: str) -> RecurrentDates | TransformerDates:
    """Load a trained model, in evaluation mode.

    Args:
        name: one of `MODELS`.

    Raises:
        ValueError: no weights are stored under this name.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.date_stored import load_date_model
        >>> from attention.trained.dates import LETTERS, SIGNS
        >>> letters = LETTERS.encode_batch([list("sunday, march the 4th 1973")])
        >>> "".join(SIGNS.decode(load_date_model("additive").write(letters)[0])[:-1])
        '1973-03-04'
    """
    path = stored(name)
    return weight_files.load(build(MODELS[name]), path)


def measured(name: str) -> Measured:
    """Read what `make train` measured of a stored model on the 2,000 held-out days.

    Args:
        name: one of `MODELS`.

    Raises:
        ValueError: no weights are stored under this name.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.date_stored import measured
        >>> measured("additive").exact > 0.99 > measured("last-state").exact
        True
    """
    told = weight_files.told(stored(name))["measured"]
    return Measured(**told | {"heads": [Alignment(*head) for head in told["heads"]]})


def store(name: str, model: RecurrentDates | TransformerDates, told: Measured) -> None:
    """Write the weights of a model in half precision, which `train` has rounded them to."""
    path = WEIGHTS / f"{name}.safetensors"
    weight_files.write(path, weight_files.half(model), measured=told._asdict())


def stored(name: str) -> Path:
    path = WEIGHTS / f"{name}.safetensors"
    if name not in MODELS or not path.exists():
        raise ValueError(f"no weights are stored for {name!r}; it can be {', '.join(MODELS)}")
    return path


def shares(numbers: tuple[float, ...] | list[float]) -> str:
    return " ".join(f"{number:.3f}" for number in numbers)


def train_all(*, dry_run: bool = False) -> None:
    """Train every model with three seeds, print what each comes to, and store seed 0.

    Args:
        dry_run: print, and store nothing.
    """
    torch.set_num_threads(1)  # the tensors are small
    dates = held_out_dates()
    evenly = torch.zeros(len(dates), 11, max(len(date.text) for date in dates))
    for row, date in zip(evenly, dates, strict=True):
        row[:, : len(date.text)] = 1 / len(date.text)
    groups = f"up to {', '.join(map(str, LENGTHS))} letters, and longer"
    print(f"dates to ISO: exact match on {len(dates)} held-out days; on those of {groups}")
    print("then, for each head, the share of its weight on the right letters: year, month, day")
    print(f"(weights that are equal for all letters: {shares(alignment(evenly, dates))})")
    for name in MODELS:
        for seed in SEEDS:
            start = time.process_time()
            model = train(name, seed)
            seconds = time.process_time() - start
            told = measure(model, dates)
            parameters = sum(x.numel() for x in model.parameters())
            print(
                f"{name:18} {parameters:7,d} parameters, seed {seed}, {seconds:4.0f} s:  "
                f"{told.exact:.4f}   {shares(told.by_length)}",
                flush=True,
            )
            for i, head in enumerate(told.heads):
                left = f"; without it {told.without[i]:.4f}" if told.without else ""
                print(f"    head {i} {shares(head)}, mean {head.mean:.3f}{left}")
            if seed == SEEDS[0] and not dry_run:
                store(name, model, told)
