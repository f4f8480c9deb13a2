"""Train models of recall."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.trained.fitting import Recipe, build, fit
from attention.trained.recall.data import LONGEST, QUESTIONS, SHORTEST, draw_pairs
from attention.trained.recall.mechanisms import MECHANISMS, require_mechanism
from attention.trained.recall.model import RecallModel

BATCH = 64  # sequences of a step
RECIPE = Recipe(steps=800, learning_rate=0.01)


def losses(
    model: RecallModel,
    seed: int,
    *,
    rewritten: bool = False,
    batch: int = BATCH,
    questions: int = QUESTIONS,
) -> Iterator[Tensor]:
    """Draw batch after batch, and yield the model's loss at the questions of each."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        n_pairs = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        *shown, answers = draw_pairs(batch, n_pairs, questions, generator, rewritten=rewritten)
        yield F.cross_entropy(model(*shown).flatten(0, 1), answers.flatten())


def train(
    mechanism: str, seed: int, *, steps: int | None = None, rewritten: bool = False
) -> RecallModel:
    """Train one model: about 4 s on one processor with softmax, 15 s with the gated delta rule.

    Sequences are drawn as they are used, all of a batch with the same number of pairs, from 4 to
    64. The weights are rounded to half precision, in which one of them is stored.

    Args:
        mechanism: one of `MECHANISMS`.
        seed: draws the first weights and the sequences, and random features where there are any.
        rewritten: whether each key is written twice.
        steps: how many batches of 64 sequences; the recipe's unless given.

    Raises:
        ValueError: there is no such mechanism.

    Example:
        >>> from attention.trained.recall import train
        >>> train("linear", seed=0, steps=2).attention.n_heads
        2
    """
    require_mechanism(mechanism)
    model = build(MECHANISMS[mechanism].make, seed)
    return fit(model, losses(model, seed, rewritten=rewritten), RECIPE, steps=steps)
