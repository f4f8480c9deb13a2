"""How often the model is right at a verb, what its heads look at, and what the query is worth."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from attention.trained.ablation import without_head
from attention.trained.two_verbs.data import TwoVerbs, encode, new_two_verbs
from attention.trained.who_and_whom.data import Batch
from attention.trained.who_and_whom.evaluation import Head, accuracy
from attention.trained.who_and_whom.model import WhoAndWhom


@torch.no_grad()
def roles(model: WhoAndWhom, sentences: Sequence[TwoVerbs]) -> list[Head]:
    """What each head looks at from the verbs, where somebody does something to somebody."""
    batch = encode(sentences)
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
    """Copy a model that gives every word one and the same query, the mean of those of the verbs.

    What it still answers right it owes to keys and values alone.

    Args:
        model: it is left as it is.
        batch: sentences with the verbs whose queries are averaged.

    Example:
        >>> from attention.trained import two_verbs
        >>> from attention.trained.who_and_whom import accuracy
        >>> model, sentences = two_verbs.load(), two_verbs.new_two_verbs()
        >>> batch = two_verbs.encode([each for each in sentences if len(each.verbs) == 2])
        >>> accuracy(two_verbs.with_one_query(model, batch), batch).both < 0.3
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
    """Measure a model at the verbs of 4,000 new sentences: see `Measured` for what."""
    sentences = new_two_verbs(model.attention.d_model)
    one, two = (
        encode([sentence for sentence in sentences if len(sentence.verbs) == count])
        for count in (1, 2)
    )

    def right(model: WhoAndWhom, batch: Batch) -> float:
        return round(accuracy(model, batch).both, 4)

    return {
        "accuracy": right(model, encode(sentences)),
        "two_verbs": right(model, two),
        "one_verb": right(model, one),
        "one_query": right(with_one_query(model, two), two),
        "without": [
            right(without_head(model, head), two) for head in range(model.attention.n_heads)
        ],
        "roles": [[round(share, 3) for share in head] for head in roles(model, sentences)],
    }


def choose(name: str, models: Sequence[WhoAndWhom]) -> int:
    """Of those within half a percent of the best, the one whose heads have the clearest roles.

    Clear is a head's weight on the answer that it looks at more. One whose head 0 looks for who
    goes before others, so that a head's number means what it means in the book's model.
    """
    measured = [measure(model) for model in models]
    best = max(each["two_verbs"] for each in measured)

    def clearness(i: int) -> tuple[bool, float]:
        roles = measured[i]["roles"]
        who, whom = roles[0]
        return who > whom, sum(map(max, roles)) / len(roles)

    near = (i for i, each in enumerate(measured) if each["two_verbs"] >= best - 0.005)
    return max(near, key=clearness)
