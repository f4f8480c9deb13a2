"""Train models of the last speaker."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.trained.fitting import Recipe, build, fit
from attention.trained.last_speaker.data import LENGTH, draw_talks
from attention.trained.last_speaker.model import LastSpeaker

BATCH = 128  # talks of a step
RECIPE = Recipe(steps=600, learning_rate=0.01)


def losses(model: LastSpeaker, seed: int) -> Iterator[Tensor]:
    """Draw batch after batch, and yield the model's loss at all question marks of each."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        token_ids, asked, speaker = draw_talks(BATCH, LENGTH, generator)
        logits, _ = model(token_ids)
        yield F.cross_entropy(logits[asked], speaker[asked])


def train(scheme: str, seed: int, *, steps: int | None = None) -> LastSpeaker:
    """Train one model: about 5 s on one processor.

    Talks of 16 words are drawn as they are used, and the loss is that of all their question marks.
    The weights are rounded to the half precision in which they are stored.

    Args:
        scheme: one of `SCHEMES`.
        seed: draws the first weights and the talks.
        steps: how many batches of 128 talks; the recipe's unless given.

    Example:
        >>> from attention.trained.last_speaker import train
        >>> train("rotary", seed=0, steps=2).scheme
        'rotary'
    """
    model = build(lambda: LastSpeaker(scheme), seed)
    return fit(model, losses(model, seed), RECIPE, steps=steps)
