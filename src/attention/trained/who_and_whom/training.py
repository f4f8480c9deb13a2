"""Train the book's model.

Sentences are drawn from the grammar as they are used, so that none is learned by heart.
"""

import random
from collections.abc import Callable, Iterator

from torch import Tensor
from torch.nn import functional as F

from attention.text import Vocabulary
from attention.trained.fitting import Recipe, build, fit
from attention.trained.who_and_whom.data import GRAMMARS, VOCABULARY, Draw, encode
from attention.trained.who_and_whom.model import WhoAndWhom

BATCH = 128  # sentences of a step
RECIPES = {  # by d_model
    8: Recipe(steps=2000, learning_rate=0.03),
    12: Recipe(steps=2500, learning_rate=0.03),
    16: Recipe(steps=6000, learning_rate=0.015),
}


def losses(
    model: WhoAndWhom, seed: int, draw: Draw | None = None, batch_size: int = BATCH
) -> Iterator[Tensor]:
    """Draw batch after batch, and yield the model's loss on each, summed for who and whom.

    Both verbs of a sentence are in the same batch, with the same words and different answers.

    Args:
        model: what learns.
        seed: draws the sentences.
        draw: draws one sentence; that of the width's grammar unless given.
        batch_size: sentences of a step.
    """
    draw, rng = draw or GRAMMARS[model.attention.d_model].draw, random.Random(seed)
    while True:
        batch = encode([draw(rng) for _ in range(batch_size)], model.vocabulary)
        answer = model(batch.token_ids, batch.verb)
        yield F.cross_entropy(answer.who, batch.who) + F.cross_entropy(answer.whom, batch.whom)


def train(
    d_model: int,
    n_heads: int,
    seed: int,
    *,
    steps: int | None = None,
    learning_rate: float | None = None,
    draw: Draw | None = None,
    vocabulary: Vocabulary = VOCABULARY,
    change: Callable[[WhoAndWhom], None] | None = None,
    watch: Callable[[int, float, WhoAndWhom], None] | None = None,
) -> WhoAndWhom:
    """Train one model: about twenty seconds on one processor at d_model 8.

    Args:
        d_model: the width of a word's vector, one of `RECIPES`.
        n_heads: how many heads.
        seed: draws the first weights and the sentences.
        steps: how many batches of 128 sentences; the recipe's unless given.
        learning_rate: its largest value on the way; the recipe's unless given.
        draw: draws one sentence; that of the width's grammar unless given.
        vocabulary: the words that the model knows, the book's unless given.
        change: what is done to the new model before its first step, as in `VARIANTS`.
        watch: called before each step with its number, from 0, the loss of its batch and the model,
            which it may read but not change.

    Example:
        >>> from attention.trained.who_and_whom import train
        >>> train(d_model=8, n_heads=2, seed=0, steps=2).training
        False
    """
    if d_model not in RECIPES:
        widths = " or ".join(map(str, RECIPES))
        raise ValueError(f"d_model={d_model} has no recipe; it can be {widths}")
    recipe = RECIPES[d_model]
    if learning_rate is not None:
        recipe = recipe._replace(learning_rate=learning_rate)

    def make() -> WhoAndWhom:
        model = WhoAndWhom(d_model, n_heads, vocabulary)
        if change is not None:
            change(model)
        return model

    model = build(make, seed)
    return fit(model, losses(model, seed, draw), recipe, steps=steps, watch=watch)
