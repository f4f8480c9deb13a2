"""Train models that have an attention sink, and models that need none."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.trained.attention_sink.data import draw_sequences
from attention.trained.attention_sink.model import SinkModel
from attention.trained.fitting import Recipe, build, fit

BATCH = 128  # sequences of a step
RECIPE = Recipe(steps=3000, learning_rate=0.01)


def losses(model: SinkModel, seed: int) -> Iterator[Tensor]:
    """Draw batch after batch, and yield the model's loss at every token of each.

    Every token counts, so a head that has nothing to say adds to the loss if it says something all
    the same.
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        token_ids, _ = draw_sequences(BATCH, generator)
        logits, _ = model(token_ids[:, :-1])
        yield F.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten())


def train(
    layer: str,
    seed: int,
    *,
    steps: int | None = None,
    watch: Callable[[int, float, SinkModel], None] | None = None,
) -> SinkModel:
    """Train one model: about a minute on one processor.

    Args:
        layer: one of `LAYERS`.
        seed: draws the first weights and the sequences.
        steps: how many batches of 128 sequences; the recipe's unless given.
        watch: called before each step with its number, from 0, the loss of its batch and the model,
            which it may read and not change.

    Example:
        >>> from attention.trained.attention_sink import train
        >>> len(train("plain", seed=0, steps=2).layers)
        2
    """
    model = build(lambda: SinkModel(layer), seed)
    return fit(model, losses(model, seed), RECIPE, steps=steps, watch=watch)
