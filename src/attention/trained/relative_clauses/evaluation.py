"""How often a model is right, by the kind of clause that a verb is in."""

import torch

from attention.trained.relative_clauses.data import (
    CLAUSES,
    MAIN,
    Clauses,
    encode_clauses,
    new_clauses,
)
from attention.trained.relative_clauses.model import RelativeClauses


@torch.no_grad()
def accuracy_by_kind(model: RelativeClauses, sentences: list[Clauses]) -> dict[str, float]:
    """The share of verbs at which both answers are right, for each kind of verb and for "all".

    Args:
        model: what answers.
        sentences: as `new_clauses` returns them; each kind must occur.

    Example:
        >>> from attention.trained.relative_clauses import (
        ...     accuracy_by_kind, load, new_clauses
        ... )
        >>> right = accuracy_by_kind(load(2), new_clauses(500))
        >>> list(right), min(right.values()) > 0.98
        (['main', 'subject', 'passive', 'object', 'all'], True)
    """
    batch = encode_clauses(sentences)
    answer = model(batch.token_ids, need_weights=False)
    right = (answer.who.argmax(-1) == batch.who) & (answer.whom.argmax(-1) == batch.whom)
    verbs: dict[str, list[bool]] = {kind: [] for kind in (MAIN, *CLAUSES)}
    for i, sentence in enumerate(sentences):
        for verb in sentence.verbs:
            verbs[verb.kind].append(right[i, verb.place].item())
    verbs["all"] = [each for kind in verbs.values() for each in kind]
    return {kind: sum(each) / len(each) for kind, each in verbs.items()}


def accuracy(model: RelativeClauses, sentences: list[Clauses]) -> float:
    """The share of verbs, of all kinds, at which both answers are right.

    Args:
        model: what answers.
        sentences: as `new_clauses` returns them; each kind must occur.

    Example:
        >>> from attention.trained.relative_clauses import accuracy, load, new_clauses
        >>> accuracy(load(2), new_clauses(500)) > 0.98
        True
    """
    return accuracy_by_kind(model, sentences)["all"]


def measure(model: RelativeClauses) -> dict[str, dict[str, float]]:
    """Measure a model on 2,000 new sentences."""
    by_kind = accuracy_by_kind(model, new_clauses())
    return {"accuracy": {kind: round(share, 4) for kind, share in by_kind.items()}}
