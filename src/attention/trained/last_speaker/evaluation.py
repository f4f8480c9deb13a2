"""How many last questions a model answers right, in talks of each length."""

import torch

from attention.trained.last_speaker.data import LENGTH, LENGTHS, Talks, new_talks
from attention.trained.last_speaker.model import LastSpeaker


@torch.no_grad()
def accuracy(model: LastSpeaker, talks: Talks) -> float:
    """The share of the talks whose last question is answered right.

    Example:
        >>> from attention.trained.last_speaker import accuracy, load, new_talks
        >>> model = load("linear bias")
        >>> accuracy(model, new_talks(16)) > 0.9, accuracy(model, new_talks(64)) > 0.9
        (True, True)
    """
    logits, _ = model(talks.token_ids, last=True)
    return (logits[:, 0].argmax(-1) == talks.speaker[:, -1]).double().mean().item()


def accuracy_by_length(model: LastSpeaker) -> dict[int, float]:
    """The accuracy on 1,000 new talks of each of `LENGTHS`, where the model can be asked at all.

    Source:
        This book's own; Press et al. 2022, figure 1, has models of both kinds on longer texts.

    Example:
        >>> from attention.trained.last_speaker import accuracy_by_length, load
        >>> list(accuracy_by_length(load("learned")))
        [16]
    """
    lengths = (LENGTH,) if model.scheme == "learned" else LENGTHS
    return {length: accuracy(model, new_talks(length)) for length in lengths}


def measure(model: LastSpeaker) -> dict[str, dict[int, float]]:
    """Measure a model on 1,000 new talks of each length."""
    by_length = accuracy_by_length(model)
    return {"accuracy": {length: round(share, 4) for length, share in by_length.items()}}
