"""How often the book's model is right, and what its heads look at."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention.masks import padding_mask
from attention.trained.ablation import without_head
from attention.trained.who_and_whom.data import Batch, Sentence, encode, new_sentences
from attention.trained.who_and_whom.model import WhoAndWhom


class Accuracy(NamedTuple):
    """Shares of verbs at which `who` is right, at which `whom` is, and at which both are right."""

    who: float
    whom: float
    both: float


# What replaces attention: it takes X (batch, seq, d_model) and the padding mask, and returns the
# output.
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
    """The mean share that either answer gets of the weight that the verb gives in this head."""

    who: float
    whom: float


@torch.no_grad()
def roles(model: WhoAndWhom, sentences: list[Sentence]) -> list[Head]:
    """What each head looks at from the verbs, where somebody does something to somebody."""
    batch = encode(sentences, model.vocabulary)
    verbs = [verb for sentence in sentences for verb in sentence.verbs]  # the rows of the batch
    rows = torch.tensor([i for i, verb in enumerate(verbs) if verb.whom is not None])
    who = torch.tensor([verbs[i].who for i in rows])
    whom = torch.tensor([verbs[i].whom for i in rows])
    weights = model(batch.token_ids, batch.verb).weights[rows, :, batch.verb[rows]]
    at = torch.arange(len(rows))  # of weights (batch, heads, key)
    shares = weights[at, :, who].mean(0).tolist(), weights[at, :, whom].mean(0).tolist()
    return [Head(*pair) for pair in zip(*shares, strict=True)]


@torch.no_grad()
def with_one_query(model: WhoAndWhom, batch: Batch) -> WhoAndWhom:
    """Copy a model so that it gives every word the same query, the mean of the verbs' queries.

    What the copy still answers right, it owes to keys and values alone.

    Args:
        model: it is left as it is.
        batch: sentences with the verbs whose queries are averaged.

    Example:
        >>> from attention.trained.who_and_whom import (
        ...     accuracy, encode, load, new_sentences, with_one_query
        ... )
        >>> batch = encode([each for each in new_sentences() if len(each.verbs) == 2])
        >>> accuracy(with_one_query(load(), batch), batch).both < 0.3
        True
    """
    x = model.embed(batch.token_ids)
    queries = model.attention.w_q(x[torch.arange(len(x)), batch.verb])  # (batch, d_model)
    model = copy.deepcopy(model)
    w_q = model.attention.w_q
    w_q.weight.zero_()
    w_q.bias.copy_(queries.mean(dim=0))
    return model


def measure(model: WhoAndWhom) -> dict[str, Any]:
    """Measure a model on 4,000 new sentences: see `Measured` for what."""
    sentences = new_sentences(model.attention.d_model)
    batch = encode(sentences)
    of_one, of_two = (
        encode([sentence for sentence in sentences if len(sentence.verbs) == count])
        for count in (1, 2)
    )

    def right(model: WhoAndWhom, batch: Batch) -> float:
        return round(accuracy(model, batch).both, 4)

    return {
        "accuracy": right(model, batch),
        "two_verbs": right(model, of_two),
        "one_verb": right(model, of_one),
        "one_query": right(with_one_query(model, of_two), of_two),
        "without": [
            right(without_head(model, head), of_two) for head in range(model.attention.n_heads)
        ],
        "roles": [[round(share, 3) for share in head] for head in roles(model, sentences)],
    }


def choose(name: str, models: Sequence[WhoAndWhom]) -> int:
    """Of the models within half a percent of the best, the one whose heads have the clearest roles.

    The clearness of a head's role is its weight on the answer that it looks at more. A model whose
    head 0 looks for who goes before the others, so that a head's number means the same in every
    chapter. Of a variant the first model is taken.
    """
    if "-" in name:
        return 0
    sentences = new_sentences(models[0].attention.d_model)
    batch = encode(sentences)
    right = [accuracy(model, batch).both for model in models]

    def clearness(i: int) -> tuple[bool, float]:
        heads = roles(models[i], sentences)
        return heads[0].who > heads[0].whom, sum(max(head) for head in heads) / len(heads)

    return max((i for i, share in enumerate(right) if share >= max(right) - 0.005), key=clearness)
