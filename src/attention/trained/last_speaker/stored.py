"""The trained weights that the book shows, by the scheme of positions."""

from pathlib import Path

from attention.trained import weight_files
from attention.trained.last_speaker.model import MODELS, LastSpeaker, file_name, require_scheme

WEIGHTS = Path(__file__).parent / "weights"


def load(scheme: str) -> LastSpeaker:
    """Load a trained model, in evaluation mode.

    Args:
        scheme: one of `SCHEMES`.

    Raises:
        ValueError: there is no such scheme.

    Example:
        >>> import torch
        >>> from attention.trained.last_speaker import NAMES, WORDS, load
        >>> talk = "ann yes ben well so ?".split()
        >>> logits, _ = load("rotary")(torch.tensor([[WORDS.index(word) for word in talk]]))
        >>> NAMES[logits[0, -1].argmax()]
        'ben'
    """
    require_scheme(scheme)
    return weight_files.load(MODELS[file_name(scheme)], path(scheme))


def measured(scheme: str) -> dict[int, float]:
    """Read the accuracy of a stored model by length, on 1,000 new talks each, as measured.

    Example:
        >>> from attention.trained.last_speaker import measured
        >>> measured("rotary")[16] > 0.99
        True
    """
    require_scheme(scheme)
    stored = weight_files.metadata(path(scheme))["accuracy"]
    return {int(length): share for length, share in stored.items()}


def path(scheme: str) -> Path:
    return WEIGHTS / f"{file_name(scheme)}.safetensors"
