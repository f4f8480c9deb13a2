"""check_decoder_step (chapter 9): ask the letters, take the GRU's step, score the signs."""

from collections.abc import Callable

import torch
from torch import nn

from attention.recurrent.additive import AdditiveAttention

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def decoder_step(state, previous, encoded, attention, gru, to_logits):
    """(batch, query_dim), (batch, sign_dim), (batch, key, key_dim), three modules.

    Returns logits (batch, vocab_size), weights (batch, key) and the state (batch, query_dim).
    """
    context, weights = asked(state, encoded, attention)
    return stepped(state, previous, context, weights, gru, to_logits)


def asked(state, encoded, attention):
    """The context (batch, key_dim) and the weights (batch, key) of one question."""
    context, weights = attention(state[:, None], encoded)
    return context[:, 0], weights[:, 0]


def stepped(state, previous, context, weights, gru, to_logits):
    """What follows the question."""
    new_state = gru(torch.cat((previous, context), dim=-1), state)
    logits = to_logits(torch.cat((new_state, context, previous), dim=-1))
    return logits, weights, new_state


BANK = Bank.read(__file__, decoder_step, globals())


def cases(numbers: Numbers) -> list[Case]:
    def drawn(module: nn.Module) -> nn.Module:
        module = module.float().requires_grad_(False)  # float32, whatever the default is
        for parameter in module.parameters():
            parameter.copy_(numbers.tensor(*parameter.shape) / 2)
        return module

    def case() -> Case:
        batch, query_dim, sign_dim, key_dim, vocab_size = numbers.sizes(5)
        # More letters than any other axis has: an error about a width tells which one went in.
        keys = numbers.sizes_from.randrange(11, 14)
        inputs = {
            "state": numbers.tensor(batch, query_dim) / 2,  # between -1 and 1, as a GRU's state is
            "previous": numbers.tensor(batch, sign_dim),
            "encoded": numbers.tensor(batch, keys, key_dim) / 2,
            "attention": drawn(AdditiveAttention(query_dim, key_dim, hidden_dim=6)),
            "gru": drawn(nn.GRUCell(sign_dim + key_dim, query_dim)),
            "to_logits": drawn(nn.Linear(query_dim + key_dim + sign_dim, vocab_size)),
        }
        return Case(inputs, unsaid=("attention", "gru", "to_logits"))

    return [case(), case()]


TASK = Task(
    "decoder_step",
    decoder_step,
    BANK,
    cases,
    {"logits": "batch vocab_size", "weights": "batch key", "state": "batch query_dim"},
)


def check_decoder_step(function: Callable, *, seed: int = 0) -> Result:
    """Check decoder_step(state, previous, encoded, attention, gru, to_logits).

    It returns logits (batch, vocab_size), weights (batch, key) and the new state (batch,
    query_dim). state (batch, query_dim) is the query of `attention`, an `AdditiveAttention`, and
    encoded (batch, key, key_dim) its keys. `gru`, an nn.GRUCell, reads [previous; context] with
    previous (batch, sign_dim), and `to_logits`, an nn.Linear, reads [new state; context; previous].
    """
    return examine(TASK, function, seed)
