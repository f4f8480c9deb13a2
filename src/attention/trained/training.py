"""Train the book's model and measure it: accuracy, and what its heads look at.

Sentences come from the grammar as fast as they are used, so that none is learned by heart.
"""

import copy
import random
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from attention.masks import padding_mask
from attention.text import Vocabulary
from attention.trained.ablation import switch_off
from attention.trained.fitting import build, fit
from attention.trained.grammar import (
    VOCABULARY,
    Batch,
    Sentence,
    draw_sentence,
    encode,
)
from attention.trained.model import WhoAndWhom

BATCH = 128  # sentences of a step

Draw = Callable[[random.Random], Sentence]  # draws one sentence


class Recipe(NamedTuple):
    """What a width can learn, and how: the grammar's two options, steps and learning rate."""

    passive: bool
    places: bool
    steps: int
    learning_rate: float

    def draw(self, rng: random.Random) -> Sentence:
        return draw_sentence(rng, passive=self.passive, places=self.places)


# Eight numbers for each word carry active sentences; passives and places take more.
RECIPES = {
    8: Recipe(passive=False, places=False, steps=2500, learning_rate=0.03),
    12: Recipe(passive=True, places=False, steps=2500, learning_rate=0.02),
    16: Recipe(passive=True, places=True, steps=3000, learning_rate=0.02),
}


def new_sentences(
    d_model: int = 8, count: int = 4000, *, draw: Draw | None = None
) -> list[Sentence]:
    """Draw new sentences of the grammar that this width learns, the same at every call.

    The grammar is small: of the 4,000 at d_model 8, training drew 1,661 as well, and at 16 it drew
    691. On the others the stored models with 2 and with 4 heads are as right as on all.

    Args:
        d_model: the width of a word's vector, one of `RECIPES`.
        count: how many sentences.
        draw: draws one sentence; the recipe's grammar unless given.

    Source:
        This book's own.

    Example:
        >>> from attention.trained.training import new_sentences
        >>> " ".join(new_sentences(8)[0].tokens)
        'a boy found the ball'
    """
    draw, rng = draw or RECIPES[d_model].draw, random.Random(10**6)
    return [draw(rng) for _ in range(count)]


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
    """Train one model: some ten seconds on one processor at d_model 8.

    Args:
        d_model: the width of a word's vector, one of `RECIPES`.
        n_heads: how many heads.
        seed: draws the first weights and the sentences.
        steps: how many batches of 128 sentences; the recipe's unless given.
        learning_rate: its largest on the way; the recipe's unless given.
        draw: draws one sentence; the recipe's grammar unless given.
        vocabulary: the words that the model knows, the book's unless given.
        change: what is done to the new model before its first step, as in `VARIANTS`.
        watch: called before each step with its number, from 0, the loss of its batch and the model,
            which it may read and not change.

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
    draw = draw or recipe.draw

    def make() -> WhoAndWhom:
        model = WhoAndWhom(d_model, n_heads, vocabulary)
        if change is not None:
            change(model)
        return model

    def loss_at(step: int) -> Tensor:
        batch = encode([draw(rng) for _ in range(BATCH)], vocabulary)
        answer = model(batch.token_ids, batch.verb)
        loss = F.cross_entropy(answer.who, batch.who) + F.cross_entropy(answer.whom, batch.whom)
        if watch is not None:
            watch(step, loss.item(), model)
        return loss

    model = build(make, seed)
    return fit(
        model,
        loss_at,
        steps=recipe.steps if steps is None else steps,
        learning_rate=recipe.learning_rate if learning_rate is None else learning_rate,
    )


class Accuracy(NamedTuple):
    """Shares of sentences: of which `who` is answered right, of which `whom`, of which both."""

    who: float
    whom: float
    both: float


# What stands in for attention: X (batch, seq, d_model) and the padding mask in, the output out.
Attend = Callable[[Tensor, Tensor], Tensor]


@torch.no_grad()
def accuracy(model: WhoAndWhom, batch: Batch, attend: Attend | None = None) -> Accuracy:
    """Measure how often the model is right.

    Args:
        model: its embedding and its read-outs are used, and its attention unless `attend` is given.
        batch: what to answer, as `encode` makes it.
        attend: called with X (batch, seq, d_model) and the padding mask (batch, 1, 1, key);
            returns the output (batch, seq, d_model).

    Source:
        This book's own.

    Example:
        >>> from attention.trained.grammar import encode
        >>> from attention.trained.stored import load_trained
        >>> from attention.trained.training import accuracy, new_sentences
        >>> model, batch = load_trained(), encode(new_sentences(count=1000))
        >>> accuracy(model, batch).both > 0.99
        True
    """
    if attend is None:
        answer = model(batch.token_ids, batch.verb)
        who, whom = answer.who, answer.whom
    else:
        mask = padding_mask(batch.token_ids, model.vocabulary.pad_id)
        who, whom = model.read(attend(model.embed(batch.token_ids), mask), batch.verb)
    right_who, right_whom = who.argmax(-1) == batch.who, whom.argmax(-1) == batch.whom
    shares = (right_who, right_whom, right_who & right_whom)
    return Accuracy(*(right.float().mean().item() for right in shares))


def without_head(model: WhoAndWhom, head: int) -> WhoAndWhom:
    """Copy the model with one head switched off, by the gate of its attention.

    Args:
        model: it is left as it is.
        head: which one, from 0 to n_heads - 1.

    Raises:
        ValueError: there is no such head.

    Source:
        This book's own; Michel et al. 2019 (§2.3) mask heads one at a time.

    Example:
        >>> from attention.trained.grammar import encode
        >>> from attention.trained.stored import load_trained
        >>> from attention.trained.training import accuracy, new_sentences, without_head
        >>> batch = encode(new_sentences(count=1000))
        >>> left = accuracy(without_head(load_trained(), 0), batch)
        >>> left.who < 0.2, left.whom > 0.8
        (True, True)
    """
    model = copy.deepcopy(model)
    switch_off(model.attention, head)
    return model


class Head(NamedTuple):
    """Of the weight that the verb gives in this head: the mean share on either answer."""

    who: float
    whom: float


@torch.no_grad()
def roles(model: WhoAndWhom, sentences: list[Sentence]) -> list[Head]:
    """What each head looks at from the verb, where somebody does something to somebody."""
    sentences = [sentence for sentence in sentences if sentence.whom is not None]
    batch = encode(sentences, model.vocabulary)
    rows = torch.arange(len(sentences))
    weights = model(batch.token_ids, batch.verb).weights[rows, :, batch.verb]  # (batch, heads, key)
    who = weights[rows, :, torch.tensor([sentence.who for sentence in sentences])].mean(0)
    whom = weights[rows, :, torch.tensor([sentence.whom for sentence in sentences])].mean(0)
    return [Head(*pair) for pair in zip(who.tolist(), whom.tolist(), strict=True)]
