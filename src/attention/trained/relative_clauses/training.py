"""Train models of relative clauses."""

import random
from collections.abc import Iterator, Sequence

from torch import Tensor
from torch.nn import functional as F

from attention.trained.fitting import Recipe, build, fit
from attention.trained.relative_clauses.data import draw_clauses, encode_clauses
from attention.trained.relative_clauses.model import RelativeClauses
from attention.trained.without_parts import without_parts

BATCH = 64  # sentences of a step
RECIPE = Recipe(steps=2500, learning_rate=0.01)


def losses(model: RelativeClauses, seed: int) -> Iterator[Tensor]:
    """Draw batch after batch, and yield the model's loss at the verbs, summed for who and whom."""
    rng = random.Random(seed)
    while True:
        batch = encode_clauses([draw_clauses(rng) for _ in range(BATCH)])
        answer = model(batch.token_ids, need_weights=False)
        for_who = F.cross_entropy(answer.who.mT, batch.who)
        yield for_who + F.cross_entropy(answer.whom.mT, batch.whom)


def train(
    n_layers: int, seed: int, *, steps: int | None = None, without: Sequence[str] = ()
) -> RelativeClauses:
    """Train one model: about 30 s on one processor with two layers.

    The weights are rounded to the half precision in which they are stored.

    Args:
        n_layers: how many layers, 1 or 2.
        seed: draws the first weights and the sentences.
        steps: how many batches of 64 sentences; the recipe's unless given.
        without: parts that it never has, as `without_parts` names them.

    Example:
        >>> from attention.trained.relative_clauses import train
        >>> train(n_layers=2, seed=0, steps=2).training
        False
    """
    model = without_parts(build(lambda: RelativeClauses(n_layers), seed), *without)
    return fit(model, losses(model, seed), RECIPE, steps=steps)
