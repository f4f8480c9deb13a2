"""The trained weights that the book shows, and what every mechanism reached.

The weights are those of softmax and of linear attention. For every mechanism a table holds what was
measured of three models, by task: the accuracy by the number of pairs as metadata, and the accuracy
by position as tensors.
"""

from pathlib import Path

from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor

from attention.trained import weight_files
from attention.trained.recall.data import TASKS
from attention.trained.recall.mechanisms import MECHANISMS, require_mechanism
from attention.trained.recall.model import RecallModel

WEIGHTS = Path(__file__).parent / "weights"
TABLE = WEIGHTS / "table.safetensors"
STORED = ("softmax", "linear")


def load(mechanism: str = "softmax") -> RecallModel:
    """Load the model that was trained on keys that are all different, in evaluation mode.

    Args:
        mechanism: "softmax" or "linear", of which weights are stored. The layer is a
            `MultiHeadAttention`, whose `attend` can be exchanged.

    Raises:
        ValueError: for another mechanism.

    Example:
        >>> import torch
        >>> from attention.trained.recall import load
        >>> keys, values = torch.tensor([[40, 7, 12]]), torch.tensor([[3, 9, 5]])
        >>> load()(keys, values, asked=torch.tensor([[7]])).argmax(-1)
        tensor([[9]])
    """
    if mechanism not in STORED:
        raise ValueError(
            f"no weights are stored for {mechanism!r}, only for 'softmax' and 'linear'; "
            "`train` makes a model of every mechanism, and `measured` says what they reached"
        )
    return weight_files.load(MECHANISMS[mechanism].make, WEIGHTS / f"{mechanism}.safetensors")


def measured(mechanism: str, *, rewritten: bool = False) -> dict[int, list[float]]:
    """Read the accuracy of three trained models by the number of pairs, as measured.

    Args:
        mechanism: one of `MECHANISMS`.
        rewritten: whether each key was written twice.

    Returns:
        For each of `LENGTHS` the accuracy on 2,000 new sequences, with seeds 0, 1 and 2.

    Raises:
        ValueError: there is no such mechanism.

    Example:
        >>> from attention.trained.recall import measured
        >>> min(measured("softmax")[64]) > 0.99 > 0.9 > max(measured("linear")[64])
        True
        >>> sum(measured("softmax", rewritten=True)[64]) / 3 < 0.6  # one of two values
        True
    """
    require_mechanism(mechanism)
    task = next(task for task, twice in TASKS.items() if twice == rewritten)
    shares = weight_files.metadata(TABLE)[task][mechanism]
    return {int(n): by_seed for n, by_seed in shares.items()}


def measured_places(mechanism: str) -> Float[Tensor, " places"]:
    """Read what `accuracy_by_place` gave, on average over three models.

    Args:
        mechanism: one of `MECHANISMS`.

    Returns:
        The shares, (64,), where position 0 was written first.

    Raises:
        ValueError: there is no such mechanism.

    Example:
        >>> from attention.trained.recall import measured_places
        >>> places = measured_places("window 8")
        >>> bool((places[-8:] > 0.99).all()), bool((places[:-8] < 0.2).all())
        (True, True)
    """
    require_mechanism(mechanism)
    return load_file(TABLE)[mechanism].float()
