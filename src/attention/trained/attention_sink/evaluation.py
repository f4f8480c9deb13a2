"""What a model gets right, what the rest costs it, and how much weight the first token gets."""

from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional as F

from attention.trained.attention_sink.data import Sequences, new_sequences
from attention.trained.attention_sink.model import SinkModel

EARLY = 8  # rows that are left out where weights are measured: they see few keys


class Loss(NamedTuple):
    """The mean loss in nats, where the next token is known from before, and anywhere else.

    No model can do better than 0 in the first case, or than the logarithm of 32, 3.47, in the
    other.
    """

    determined: float
    others: float


@torch.no_grad()
def accuracy(
    model: SinkModel, sequences: Sequences, mask: Bool[Tensor, "..."] | None = None
) -> float:
    """The share of the determined next tokens that the model puts first.

    Args:
        model: as trained.
        sequences: as `draw_sequences` makes them.
        mask: (query, key), True = may attend; every key that is not later unless given.

    Example:
        >>> from attention.trained.attention_sink import accuracy, load, new_sequences
        >>> accuracy(load("plain"), new_sequences(500)) > 0.9
        True
    """
    token_ids, determined = sequences
    right = model(token_ids[:, :-1], mask)[0].argmax(-1) == token_ids[:, 1:]
    return right[determined[:, :-1]].float().mean().item()


@torch.no_grad()
def loss(model: SinkModel, sequences: Sequences, mask: Bool[Tensor, "..."] | None = None) -> Loss:
    """What the model pays where the next token is known, and where it can only be guessed.

    Args:
        model: as trained.
        sequences: as `draw_sequences` makes them.
        mask: (query, key), True = may attend; every key that is not later unless given.

    Example:
        >>> from attention.trained.attention_sink import load, loss, new_sequences
        >>> known, guessed = loss(load("plain"), new_sequences(500))
        >>> known < 0.5, guessed < 3.6
        (True, True)
    """
    token_ids, determined = sequences
    logits = model(token_ids[:, :-1], mask)[0].mT  # (batch, vocab_size, seq)
    each = F.cross_entropy(logits, token_ids[:, 1:], reduction="none")
    known = determined[:, :-1]
    return Loss(each[known].mean().item(), each[~known].mean().item())


@torch.no_grad()
def weight_of_first(model: SinkModel, sequences: Sequences) -> list[list[float]]:
    """The weight of each head on the start mark where the next token is not determined, by layer.

    Example:
        >>> from attention.trained.attention_sink import load, new_sequences, weight_of_first
        >>> max(weight_of_first(load("plain"), new_sequences(500))[1]) > 0.5
        True
    """
    token_ids, determined = sequences
    _, weights = model(token_ids[:, :-1])
    others = ~determined[:, EARLY:-1]
    return [
        [layer[:, head, EARLY:, 0][others].mean().item() for head in range(layer.shape[1])]
        for layer in weights
    ]


def without_key(seq: int, key: int) -> Bool[Tensor, "seq seq"]:
    """A mask that takes one key from all later queries: True = may attend.

    Example:
        >>> from attention.trained.attention_sink import without_key
        >>> without_key(3, 0).int()
        tensor([[1, 1, 1],
                [0, 1, 1],
                [0, 1, 1]], dtype=torch.int32)
    """
    mask = torch.ones(seq, seq, dtype=torch.bool)
    mask[key + 1 :, key] = False
    return mask


def measure(model: SinkModel) -> dict[str, float | list]:
    """Measure a model on 2,000 new sequences, with all keys and without the first one."""
    sequences = new_sequences()
    mask = without_key(sequences.token_ids.shape[1] - 1, 0)
    with_all, without = (loss(model, sequences, each) for each in (None, mask))
    first = weight_of_first(model, sequences)
    return {
        "accuracy": round(accuracy(model, sequences), 4),
        "accuracy_without": round(accuracy(model, sequences, mask), 4),
        "loss": [round(each, 4) for each in with_all],
        "loss_without": [round(each, 4) for each in without],
        "weight_of_first": [[round(each, 4) for each in layer] for layer in first],
    }
