"""Measure the models on held-out days, and what their heads look at.

What is measured is the exact match: the share of dates in which every sign is right. In addition,
because the writer knows which letters say the year, the month and the day, an attention map can be
compared with them: `alignment` measures how much of its weight lies where it should.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention.arguments import require_vectors
from attention.trained.ablation import without_head
from attention.trained.dates.data import STEPS, WrittenDate, encode
from attention.trained.dates.model import RecurrentDates, TransformerDates

LENGTHS = (20, 30, 40)  # letters: the ends of the first three of four groups of written dates


@torch.no_grad()
def right(
    model: RecurrentDates | TransformerDates, dates: list[WrittenDate]
) -> Bool[Tensor, " dates"]:
    """Say for each date whether the model writes every sign of it correctly.

    Args:
        model: writes by itself; it is not told the previous signs.
        dates: what to read and what to write.

    Example:
        >>> from attention.trained.dates import held_out_dates, load, right
        >>> right(load("additive"), held_out_dates()[:200]).double().mean().item() > 0.95
        True
    """
    letters, signs = encode(dates)
    written = model.write(letters)
    # Where every answer ended early, there are fewer signs, and each has an <end> too soon.
    return (written == signs[:, 1 : 1 + written.shape[1]]).all(1)


def accuracy(model: RecurrentDates | TransformerDates, dates: list[WrittenDate]) -> float:
    """The exact match: the share of the dates in which every sign is right.

    Example:
        >>> from attention.trained.dates import accuracy, held_out_dates, load
        >>> accuracy(load("additive"), held_out_dates()[:200]) > 0.95
        True
    """
    return right(model, dates).double().mean().item()


@torch.no_grad()
def attention_of(
    model: RecurrentDates | TransformerDates, dates: list[WrittenDate]
) -> Float[Tensor, "dates heads target key"]:
    """Return the weights with which the model reads each date while it is told the right signs.

    Args:
        model: a recurrent one has one head, and a transformer has those of its cross-attention.
        dates: what to read and what to write.

    Example:
        >>> from attention.trained.dates import alignment, attention_of, held_out_dates, load
        >>> dates = held_out_dates()[:200]
        >>> weights = attention_of(load("additive"), dates)[:, 0]
        >>> alignment(weights, dates).mean > 0.5
        True
    """
    letters, signs = encode(dates)
    return model(letters, signs[:, :-1])[1]


class Alignment(NamedTuple):
    """The share of weight on the letters of year, month and day, at the steps that write each."""

    year: float
    month: float
    day: float

    @property
    def mean(self) -> float:
        """The mean of the three."""
        return sum(self) / 3


def alignment(weights: Float[Tensor, "batch target key"], dates: list[WrittenDate]) -> Alignment:
    """Measure how much of the weight lies on the letters that say what is being written.

    At the four steps that write "1973", the letters of the year are the right ones, and so on. The
    steps that write "-" and <end> do not count.

    Args:
        weights: (batch, target, key), of one head: the answer's i-th sign is written at target i.
            Every row sums to 1.
        dates: the batch.

    Raises:
        ValueError: there is not one row of weights for every letter, sign and date.

    Example:
        >>> import torch
        >>> from attention.trained.dates import WrittenDate, alignment
        >>> parts = {"year": slice(12, 16), "month": slice(7, 11), "day": slice(5, 6)}
        >>> date = WrittenDate("sun, 4 july 1976", "1976-07-04", **parts)
        >>> alignment(torch.full((1, 11, 16), 1 / 16), [date])  # the same for every letter
        Alignment(year=0.25, month=0.25, day=0.0625)
    """
    require_vectors("weights", weights, "batch target key")
    longest = max(len(date.text) for date in dates)
    batch, target, key = weights.shape
    if batch != len(dates) or target < 10 or key < longest:
        raise ValueError(
            f"weights must be (batch, target, key) with batch {len(dates)}, target at least 10 and "
            f"key at least {longest}, got {tuple(weights.shape)}"
        )
    shares = []
    for part, steps in STEPS.items():
        letters = torch.zeros(batch, key, dtype=torch.bool)
        for row, date in zip(letters, dates, strict=True):
            row[getattr(date, part)] = True
        right = weights[:, steps].masked_fill(~letters[:, None], 0.0).sum(-1)
        shares.append(right.double().mean().item())
    return Alignment(*shares)


class Measured(NamedTuple):
    """What a model reaches on some dates.

    Attributes:
        exact: the share of dates in which every sign is right.
        by_length: the same for the dates of up to 20, 30 and 40 letters, and for the longer ones.
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
        dates: held-out dates; there must be at least one in each group of lengths.

    Example:
        >>> from attention.trained.dates import held_out_dates, load, measure
        >>> measured = measure(load("last-state"), held_out_dates()[:200])
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
        [accuracy(other, dates) for other in left],
    )
