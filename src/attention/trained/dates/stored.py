"""The trained weights that the book shows, by the name of the model."""

from pathlib import Path

from attention.trained import weight_files
from attention.trained.dates.evaluation import Alignment, Measured
from attention.trained.dates.model import MODELS, RecurrentDates, TransformerDates

WEIGHTS = Path(__file__).parent / "weights"


def load(name: str) -> RecurrentDates | TransformerDates:
    """Load a trained model, in evaluation mode.

    Args:
        name: one of `MODELS`.

    Raises:
        ValueError: no weights are stored under this name.

    Example:
        >>> from attention.trained.dates import LETTERS, SIGNS, load
        >>> letters = LETTERS.encode_batch([list("sunday, march the 4th 1973")])
        >>> "".join(SIGNS.decode(load("additive").write(letters)[0])[:-1])
        '1973-03-04'
    """
    weights = path(name)
    return weight_files.load(MODELS[name], weights)


def measured(name: str) -> Measured:
    """Read what `make train` measured of a stored model on the 2,000 held-out days.

    Args:
        name: one of `MODELS`.

    Raises:
        ValueError: no weights are stored under this name.

    Example:
        >>> from attention.trained.dates import measured
        >>> measured("additive").exact > 0.99 > measured("last-state").exact
        True
    """
    stored = weight_files.metadata(path(name))
    return Measured(**stored | {"heads": [Alignment(*head) for head in stored["heads"]]})


def path(name: str) -> Path:
    if name not in MODELS:
        raise ValueError(f"no weights are stored for {name!r}; it can be {', '.join(MODELS)}")
    return WEIGHTS / f"{name}.safetensors"
