"""The trained weights that the book shows, by the number of layers."""

from pathlib import Path

from attention.trained import weight_files
from attention.trained.induction.model import LAYERS, MODELS, AttentionOnly, file_name

WEIGHTS = Path(__file__).parent / "weights"


def load(n_layers: int = 2) -> AttentionOnly:
    """Load a trained model, in evaluation mode.

    Args:
        n_layers: one of `LAYERS`.

    Raises:
        ValueError: no weights are stored for that many layers.

    Example:
        >>> import torch
        >>> from attention.trained.induction import load
        >>> logits, _ = load()(torch.tensor([[7, 3, 9, 21, 4, 15, 7, 3]]))
        >>> logits[0, -1].argmax().item()  # after 3 came 9
        9
    """
    require_stored(n_layers)
    return weight_files.load(MODELS[file_name(n_layers)], path(n_layers))


def measured(n_layers: int = 2) -> float:
    """Read the accuracy of a stored model, on 4,000 new sequences, as training measured it.

    Example:
        >>> from attention.trained.induction import measured
        >>> measured(2) > 0.99
        True
    """
    return weight_files.metadata(path(n_layers))["accuracy"]


def require_stored(n_layers: int) -> None:
    if n_layers not in LAYERS:
        can_be = " or ".join(map(str, LAYERS))
        raise ValueError(f"no weights are stored for n_layers={n_layers}; it can be {can_be}")


def path(n_layers: int) -> Path:
    return WEIGHTS / f"{file_name(n_layers)}.safetensors"
