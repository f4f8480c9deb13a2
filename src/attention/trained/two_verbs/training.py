"""Train the model at every verb of sentences with one verb or two.

Both verbs of a sentence stand in the same batch, with the same words and other answers.
"""

import random
from collections.abc import Iterator

from torch import Tensor
from torch.nn import functional as F

from attention.trained.fitting import Recipe, build, fit
from attention.trained.two_verbs.data import draw_two_verbs, encode
from attention.trained.two_verbs.model import make
from attention.trained.who_and_whom.model import WhoAndWhom

BATCH = 128  # sentences of a step
RECIPES = {  # by d_model
    8: Recipe(steps=2000, learning_rate=0.03),
    12: Recipe(steps=2500, learning_rate=0.03),
}


def losses(
    model: WhoAndWhom, seed: int, *, d_model: int | None = None, batch_size: int = BATCH
) -> Iterator[Tensor]:
    """Draw batch after batch, and yield the model's loss of each: who's and whom's, added.

    Args:
        model: what learns.
        seed: draws the sentences.
        d_model: whose sentences; the model's own width's unless given.
        batch_size: sentences of a step.
    """
    rng = random.Random(seed)
    d_model = d_model or model.attention.d_model
    while True:
        batch = encode([draw_two_verbs(rng, d_model=d_model) for _ in range(batch_size)])
        answer = model(batch.token_ids, batch.verb)
        yield F.cross_entropy(answer.who, batch.who) + F.cross_entropy(answer.whom, batch.whom)


def train(d_model: int, n_heads: int, seed: int, *, steps: int | None = None) -> WhoAndWhom:
    """Train one model: some twenty seconds on one processor at d_model 8.

    Args:
        d_model: the width of a word's vector, one of `RECIPES`.
        n_heads: how many heads.
        seed: draws the first weights and the sentences.
        steps: how many batches of 128 sentences; the recipe's unless given.

    Raises:
        ValueError: there is no recipe for this width.

    Example:
        >>> from attention.trained import two_verbs
        >>> two_verbs.train(d_model=8, n_heads=2, seed=0, steps=2).training
        False
    """
    if d_model not in RECIPES:
        widths = " or ".join(map(str, RECIPES))
        raise ValueError(f"d_model={d_model} has no recipe; it can be {widths}")
    model = build(lambda: make(d_model, n_heads), seed)
    return fit(model, losses(model, seed), RECIPES[d_model], steps=steps)
