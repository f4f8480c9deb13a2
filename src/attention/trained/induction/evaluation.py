"""How many of the determined next tokens a model puts first."""

import torch

from attention.trained.induction.data import Sequences, new_sequences
from attention.trained.induction.model import AttentionOnly


@torch.no_grad()
def accuracy(model: AttentionOnly, sequences: Sequences) -> float:
    """The share of the determined next tokens that the model puts first.

    Example:
        >>> from attention.trained.induction import accuracy, load, new_sequences
        >>> one, two = (accuracy(load(n), new_sequences(500)) for n in (1, 2))
        >>> one < 0.2, two > 0.99
        (True, True)
    """
    token_ids, determined = sequences
    right = model(token_ids)[0].argmax(-1) == token_ids.roll(-1, 1)
    return right[determined].float().mean().item()


def measure(model: AttentionOnly) -> dict[str, float]:
    """Measure a model on 4,000 new sequences."""
    return {"accuracy": round(accuracy(model, new_sequences()), 4)}
