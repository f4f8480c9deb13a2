"""Train the models that turn written dates into ISO dates, and measure them on held-out days.

What is measured is the exact match: the share of dates of which every sign is right. Besides, for
each head, how much of its weight lies on the letters that say what is being written.
"""

import copy
import random
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from attention.trained.ablation import switch_off
from attention.trained.date_models import MODELS, RecurrentDates, TransformerDates
from attention.trained.dates import Alignment, WrittenDate, alignment, draw_dates, encode
from attention.trained.fitting import build, fit

BATCH = 64  # dates of a step
LARGEST_GRADIENT = 1.0
LENGTHS = (20, 30, 40)  # letters: the ends of the first three of four groups of written dates


class Recipe(NamedTuple):
    """How a model learns: steps, and the highest learning rate."""

    steps: int
    learning_rate: float


RECURRENT, LONGER, TRANSFORMER = Recipe(500, 0.01), Recipe(1500, 0.01), Recipe(1200, 0.007)


def recipe_of(name: str) -> Recipe:
    if name.startswith("transformer"):
        return TRANSFORMER
    return LONGER if name.endswith("-longer") else RECURRENT


def batches(rng: random.Random) -> Iterator[list[WrittenDate]]:
    """Draw batches without end, with dates of like length in one batch: less padding to read."""
    while True:
        dates = sorted(draw_dates(8 * BATCH, rng), key=lambda date: len(date.text))
        groups = [dates[i : i + BATCH] for i in range(0, len(dates), BATCH)]
        rng.shuffle(groups)
        yield from groups


def train(name: str, seed: int, *, steps: int | None = None) -> RecurrentDates | TransformerDates:
    """Train one model, with the correct sign before it at every step (teacher forcing).

    Args:
        name: one of `MODELS`.
        seed: draws the first weights and the dates.
        steps: how many batches of 64 dates; the recipe's unless given.

    Raises:
        ValueError: there is no such model.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.date_training import train
        >>> train("additive", seed=0, steps=2).training
        False
    """
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}; it can be {', '.join(MODELS)}")
    recipe = recipe_of(name)
    model = build(MODELS[name], seed)
    drawn = batches(random.Random(seed))

    def loss_at(step: int) -> Tensor:
        letters, signs = encode(next(drawn))
        logits, _ = model(letters, signs[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), signs[:, 1:].flatten())

    return fit(
        model,
        loss_at,
        steps=recipe.steps if steps is None else steps,
        learning_rate=recipe.learning_rate,
        largest_gradient=LARGEST_GRADIENT,
    )


@torch.no_grad()
def right(
    model: RecurrentDates | TransformerDates, dates: list[WrittenDate]
) -> Bool[Tensor, " dates"]:
    """Say of each date whether the model writes every sign of it right.

    Args:
        model: writes by itself; it is not told the signs before.
        dates: what to read and what to write.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.date_stored import load_date_model
        >>> from attention.trained.date_training import right
        >>> from attention.trained.dates import held_out_dates
        >>> right(load_date_model("additive"), held_out_dates()[:200]).double().mean().item() > 0.95
        True
    """
    letters, signs = encode(dates)
    written = model.write(letters)
    # Where every answer ended early, there are fewer signs, and an <end> too soon in each.
    return (written == signs[:, 1 : 1 + written.shape[1]]).all(1)


@torch.no_grad()
def attention_of(
    model: RecurrentDates | TransformerDates, dates: list[WrittenDate]
) -> Float[Tensor, "dates heads target key"]:
    """Return the weights with which the model reads each date while it is told the right signs.

    Args:
        model: a recurrent one has one head, a transformer those of its cross-attention.
        dates: what to read and what to write.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.date_stored import load_date_model
        >>> from attention.trained.date_training import attention_of
        >>> from attention.trained.dates import alignment, held_out_dates
        >>> dates = held_out_dates()[:200]
        >>> weights = attention_of(load_date_model("additive"), dates)[:, 0]
        >>> alignment(weights, dates).mean > 0.5
        True
    """
    letters, signs = encode(dates)
    return model(letters, signs[:, :-1])[1]


def without_head(model: TransformerDates, head: int) -> TransformerDates:
    """Copy the model with one head of its cross-attention switched off, by its gate.

    Args:
        model: it is left as it is.
        head: which one, from 0 to n_heads - 1.

    Raises:
        ValueError: there is no such head.

    Source:
        This book's own; Michel et al. 2019 (§2.3) mask heads one at a time.

    Example:
        >>> from attention.trained.date_stored import load_date_model
        >>> from attention.trained.date_training import right, without_head
        >>> from attention.trained.dates import held_out_dates
        >>> model, dates = load_date_model("transformer"), held_out_dates()[:200]
        >>> bool(right(without_head(model, 0), dates).sum() < right(model, dates).sum())
        True
    """
    model = copy.deepcopy(model)
    switch_off(model.transformer.decoder.layers[0].cross_attention, head)
    return model


class Measured(NamedTuple):
    """What a model comes to on some dates.

    Attributes:
        exact: the share of dates of which every sign is right.
        by_length: the same of the dates of up to 20, 30, 40 letters, and of the longer ones.
        heads: the alignment of every head; none for a model without attention.
        without: the exact match without each head of the cross-attention, for a transformer.
    """

    exact: float
    by_length: list[float]
    heads: list[Alignment]
    without: list[float]


def measure(model: RecurrentDates | TransformerDates, dates: list[WrittenDate]) -> Measured:
    """Measure a model.

    Args:
        model: any of `MODELS`.
        dates: held-out ones; each group of lengths needs one.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.date_stored import load_date_model
        >>> from attention.trained.date_training import measure
        >>> from attention.trained.dates import held_out_dates
        >>> measured = measure(load_date_model("last-state"), held_out_dates()[:200])
        >>> measured.exact < 0.8, len(measured.by_length), measured.heads
        (True, 4, [])
    """
    group = torch.bucketize(torch.tensor([len(date.text) for date in dates]), torch.tensor(LENGTHS))
    correct = right(model, dates).double()
    weights = attention_of(model, dates)
    heads = weights.unbind(1) if weights.any() else ()
    transformer = isinstance(model, TransformerDates)
    left = [without_head(model, i) for i in range(len(heads))] if transformer else []
    return Measured(
        correct.mean().item(),
        [correct[group == i].mean().item() for i in range(len(LENGTHS) + 1)],
        [alignment(head, dates) for head in heads],
        [right(other, dates).double().mean().item() for other in left],
    )
