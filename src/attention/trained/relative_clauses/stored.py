"""The trained weights that the book shows, by the number of layers."""

from pathlib import Path

from attention.trained import weight_files
from attention.trained.relative_clauses.model import (
    MODELS,
    RelativeClauses,
    file_name,
    require_layers,
)

WEIGHTS = Path(__file__).parent / "weights"


def load(n_layers: int = 2) -> RelativeClauses:
    """Load a trained model, in evaluation mode.

    Args:
        n_layers: one of `LAYERS`.

    Raises:
        ValueError: for another number of layers.

    Example:
        >>> from attention.trained.relative_clauses import VOCABULARY, load
        >>> tokens = "the dog that the cat chased saw a bird".split()
        >>> answer = load()(VOCABULARY.encode_batch([tokens]))
        >>> for place in (5, 6):
        ...     best = [x[0, place].argmax().item() for x in (answer.who, answer.whom)]
        ...     print(tokens[place], VOCABULARY.decode(best))
        chased ['cat', 'dog']
        saw ['dog', 'bird']
    """
    require_layers(n_layers)
    return weight_files.load(MODELS[file_name(n_layers)], path(n_layers))


def measured(n_layers: int = 2) -> dict[str, float]:
    """Read the `accuracy_by_kind` of a stored model on 2,000 new sentences, from its file.

    Raises:
        ValueError: as for `load`.

    Example:
        >>> from attention.trained.relative_clauses import measured
        >>> measured(1)["all"] < 0.9, measured(2)["all"] > 0.99
        (True, True)
    """
    require_layers(n_layers)
    return weight_files.metadata(path(n_layers))["accuracy"]


def path(n_layers: int) -> Path:
    return WEIGHTS / f"{file_name(n_layers)}.safetensors"
