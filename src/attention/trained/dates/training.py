"""Train the models that turn written dates into ISO dates."""

import random
from collections.abc import Iterator

from torch import Tensor
from torch.nn import functional as F

from attention.trained.dates.data import WrittenDate, draw_dates, encode
from attention.trained.dates.model import MODELS, RecurrentDates, TransformerDates
from attention.trained.fitting import Recipe, build, fit

BATCH = 64  # dates of a step
RECURRENT = Recipe(steps=500, learning_rate=0.01, largest_gradient=1.0)
LONGER = RECURRENT._replace(steps=1500)
LONGEST = RECURRENT._replace(steps=6000)
TRANSFORMER = Recipe(steps=1200, learning_rate=0.007, largest_gradient=1.0)


def recipe_of(name: str) -> Recipe:
    if name.startswith("transformer"):
        return TRANSFORMER
    if name.endswith("-longest"):
        return LONGEST
    return LONGER if name.endswith("-longer") else RECURRENT


RECIPES = {name: recipe_of(name) for name in MODELS}


def batches(rng: random.Random) -> Iterator[list[WrittenDate]]:
    """Draw batches without end, each with dates of similar length, so that less padding is read."""
    while True:
        dates = sorted(draw_dates(8 * BATCH, rng), key=lambda date: len(date.text))
        groups = [dates[i : i + BATCH] for i in range(0, len(dates), BATCH)]
        rng.shuffle(groups)
        yield from groups


def losses(model: RecurrentDates | TransformerDates, seed: int) -> Iterator[Tensor]:
    """Draw batch after batch, and yield the model's loss at every sign of each."""
    for dates in batches(random.Random(seed)):
        letters, signs = encode(dates)
        logits, _ = model(letters, signs[:, :-1])
        yield F.cross_entropy(logits.flatten(0, 1), signs[:, 1:].flatten())


def train(name: str, seed: int, *, steps: int | None = None) -> RecurrentDates | TransformerDates:
    """Train one model, which is told the correct previous sign at every step (teacher forcing).

    Args:
        name: one of `MODELS`.
        seed: draws the first weights and the dates.
        steps: how many batches of 64 dates; the recipe's unless given.

    Raises:
        ValueError: there is no such model.

    Example:
        >>> from attention.trained.dates import train
        >>> train("additive", seed=0, steps=2).training
        False
    """
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}; it can be {', '.join(MODELS)}")
    model = build(MODELS[name], seed)
    return fit(model, losses(model, seed), RECIPES[name], steps=steps)
