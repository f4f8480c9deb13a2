"""How often the book's model is right, and what its heads look at."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention.masks import padding_mask
from attention.trained.who_and_whom.data import Batch, Sentence, encode, new_sentences
from attention.trained.who_and_whom.model import WhoAndWhom


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

    Example:
        >>> from attention.trained.who_and_whom import accuracy, encode, load, new_sentences
        >>> model, batch = load(), encode(new_sentences(count=1000))
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


def measure(model: WhoAndWhom) -> dict[str, Any]:
    """Measure a model on 4,000 new sentences: the share of both right, and its heads' roles."""
    sentences = new_sentences(model.attention.d_model)
    return {
        "accuracy": round(accuracy(model, encode(sentences)).both, 4),
        "roles": [[round(share, 3) for share in head] for head in roles(model, sentences)],
    }


def choose(name: str, models: Sequence[WhoAndWhom]) -> int:
    """Of those within half a percent of the best, the one whose heads have the clearest roles.

    Clear is a head's weight on the answer that it looks at more. Of a variant the first is taken.
    """
    if "-" in name:
        return 0
    sentences = new_sentences(models[0].attention.d_model)
    batch = encode(sentences)
    right = [accuracy(model, batch).both for model in models]

    def clearness(i: int) -> float:
        heads = roles(models[i], sentences)
        return sum(max(head) for head in heads) / len(heads)

    return max((i for i, share in enumerate(right) if share >= max(right) - 0.005), key=clearness)
