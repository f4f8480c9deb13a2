"""Train the book's model and measure it: accuracy, and what its heads look at.

Sentences come from the grammar as fast as they are used, so that none is learned by heart.
"""

import random
from typing import NamedTuple

import torch
from torch.nn import functional as F

from attention.arguments import require_size
from attention.trained.grammar import Batch, Sentence, draw_sentence, draw_sentences, encode
from attention.trained.model import WhoAndWhom

BATCH = 128  # sentences of a step


class Recipe(NamedTuple):
    """What a width can learn, and how: the grammar's two options, steps and learning rate."""

    passive: bool
    places: bool
    steps: int
    learning_rate: float


# Eight numbers for each word carry active sentences; passives and places take more.
RECIPES = {
    8: Recipe(passive=False, places=False, steps=2500, learning_rate=0.03),
}


def new_sentences(d_model: int, count: int = 4000) -> list[Sentence]:
    """Draw sentences that no training draws, of the grammar that this width learns.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.training import new_sentences
        >>> " ".join(new_sentences(8)[0].tokens)
        'the boy found a red boy'
    """
    recipe = RECIPES[d_model]
    return draw_sentences(count, passive=recipe.passive, places=recipe.places, seed=10**6)


def train(d_model: int, n_heads: int, seed: int, *, steps: int | None = None) -> WhoAndWhom:
    """Train one model: some ten seconds on one processor at d_model 8.

    Args:
        d_model: the width of a word's vector, one of `RECIPES`.
        n_heads: how many heads.
        seed: draws the first weights and the sentences.
        steps: how many batches of 128 sentences; the recipe's unless given.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.training import train
        >>> train(d_model=8, n_heads=2, seed=0, steps=2).training
        False
    """
    if d_model not in RECIPES:
        widths = " or ".join(map(str, RECIPES))
        raise ValueError(f"d_model={d_model} has no recipe; it can be {widths}")
    recipe, rng = RECIPES[d_model], random.Random(seed)
    steps = recipe.steps if steps is None else steps
    require_size("steps", steps)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = WhoAndWhom(d_model, n_heads)
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.learning_rate, total_steps=steps
    )
    for _ in range(steps):
        batch = encode(
            [draw_sentence(rng, passive=recipe.passive, places=recipe.places) for _ in range(BATCH)]
        )
        answer = model(batch.token_ids, batch.verb)
        loss = F.cross_entropy(answer.who, batch.who) + F.cross_entropy(answer.whom, batch.whom)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def accuracy(model: WhoAndWhom, batch: Batch) -> float:
    """The share of sentences of which both answers are right."""
    answer = model(batch.token_ids, batch.verb)
    right = (answer.who.argmax(-1) == batch.who) & (answer.whom.argmax(-1) == batch.whom)
    return right.float().mean().item()


class Head(NamedTuple):
    """Of the weight that the verb gives in this head: the mean share on either answer."""

    who: float
    whom: float


@torch.no_grad()
def roles(model: WhoAndWhom, sentences: list[Sentence]) -> list[Head]:
    """What each head looks at from the verb, where somebody does something to somebody."""
    sentences = [sentence for sentence in sentences if sentence.whom is not None]
    batch = encode(sentences)
    rows = torch.arange(len(sentences))
    weights = model(batch.token_ids, batch.verb).weights[rows, :, batch.verb]  # (batch, heads, key)
    who = weights[rows, :, torch.tensor([sentence.who for sentence in sentences])].mean(0)
    whom = weights[rows, :, torch.tensor([sentence.whom for sentence in sentences])].mean(0)
    return [Head(*pair) for pair in zip(who.tolist(), whom.tolist(), strict=True)]
