"""check_decoder_step (chapter 9): ask the letters, take the GRU's step, score the signs."""

from collections.abc import Callable

import torch
from torch import nn

from attention.recurrent.additive import AdditiveAttention

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
ASK = "`context, weights = attention(state[:, None], encoded)`"
STEP = "`gru(torch.cat((previous, context), dim=-1), state)`"
SCORE = "`to_logits(torch.cat((new_state, context, previous), dim=-1))`"
BY_PLACE = (
    "A linear layer has its weights by column, and the widths of the three add up in any order, so "
    "no shape complains."
)


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


@BANK.mistake(
    "You ask a second time, with the new state, and these weights and this context are what comes "
    "out. The state after the step is Luong's query; here the state before it asks, once.",
    f"Ask before the step, with `state`, and use that context in both places: {ASK}.",
)
def asks_again_with_the_new_state(state, previous, encoded, attention, gru, to_logits):
    context, _ = asked(state, encoded, attention)
    new_state = gru(torch.cat((previous, context), dim=-1), state)
    context, weights = asked(new_state, encoded, attention)
    return to_logits(torch.cat((new_state, context, previous), dim=-1)), weights, new_state


@BANK.mistake(
    "The GRU gets the sign before alone, and it is made for sign and context side by side. If you "
    "took its step first in order to ask with the new state: that is Luong's order. Here the state "
    "before the step asks.",
    f"Ask first, then {STEP}.",
)
def gru_without_the_context(state, previous, encoded, attention, gru, to_logits):
    return gru(previous, state)


@BANK.mistake(
    "The GRU gets the context alone, so that it does not know which sign was written before.",
    f"Give it both, the sign first: {STEP}.",
)
def gru_without_the_sign(state, previous, encoded, attention, gru, to_logits):
    context, _ = asked(state, encoded, attention)
    return gru(context, state)


@BANK.mistake(
    "In the GRU's input the context stands in front of the sign. Its weights for the sign meet the "
    "context, and the widths add up in either order, so no shape complains.",
    f"The sign before comes first: {STEP}.",
)
def context_in_front_of_the_sign(state, previous, encoded, attention, gru, to_logits):
    context, weights = asked(state, encoded, attention)
    new_state = gru(torch.cat((context, previous), dim=-1), state)
    return to_logits(torch.cat((new_state, context, previous), dim=-1)), weights, new_state


@BANK.mistake(
    "The GRU is called without a state, and torch then starts it from zeros. What was written "
    "earlier is forgotten at every step.",
    f"Hand it the old state as its second argument: {STEP}.",
)
def gru_from_zeros(state, previous, encoded, attention, gru, to_logits):
    context, weights = asked(state, encoded, attention)
    return stepped(torch.zeros_like(state), previous, context, weights, gru, to_logits)


@BANK.mistake(
    "The two arguments of the GRU have changed places: it takes your state for its input.",
    f"Input first, old state second: {STEP}.",
)
def gru_arguments_swapped(state, previous, encoded, attention, gru, to_logits):
    context, _ = asked(state, encoded, attention)
    return gru(state, torch.cat((previous, context), dim=-1))


@BANK.mistake(
    "Your context is the row of the last letter, however the weights fall. That is the writer that "
    "never looks back: the weights are computed, and nothing uses them.",
    f"Take the context that the attention returns: {ASK}.",
)
def context_of_the_last_row(state, previous, encoded, attention, gru, to_logits):
    _, weights = asked(state, encoded, attention)
    return stepped(state, previous, encoded[:, -1], weights, gru, to_logits)


@BANK.mistake(
    "Your context is the plain mean of all rows: every letter counts alike, whatever the state "
    "asks.",
    f"The context is the sum of the rows in the shares that the weights say: {ASK}.",
)
def context_is_the_plain_mean(state, previous, encoded, attention, gru, to_logits):
    _, weights = asked(state, encoded, attention)
    return stepped(state, previous, encoded.mean(dim=1), weights, gru, to_logits)


@BANK.mistake(
    "Your context is the sum of all rows, as if every letter had all of the weight.",
    f"The context is the sum of the rows in the shares that the weights say: {ASK}.",
)
def context_is_the_plain_sum(state, previous, encoded, attention, gru, to_logits):
    _, weights = asked(state, encoded, attention)
    return stepped(state, previous, encoded.sum(dim=1), weights, gru, to_logits)


@BANK.mistake(
    "The logits are made of the state before the step. Bahdanau's paper reads that one; this "
    "decoder reads the new state, which knows the sign before and the context.",
    f"Take what the GRU returned: {SCORE}.",
)
def logits_of_the_old_state(state, previous, encoded, attention, gru, to_logits):
    context, weights = asked(state, encoded, attention)
    new_state = gru(torch.cat((previous, context), dim=-1), state)
    return to_logits(torch.cat((state, context, previous), dim=-1)), weights, new_state


@BANK.mistake(
    "The logits are made of the new state alone. The output layer reads the context and the sign "
    "before beside it.",
    f"Join all three: {SCORE}.",
)
def logits_of_the_state_alone(state, previous, encoded, attention, gru, to_logits):
    return to_logits(state)


@BANK.mistake(
    "The logits are made without the context. It has entered the new state, and the output layer "
    "wants it directly as well.",
    f"Join all three: {SCORE}.",
)
def logits_without_the_context(state, previous, encoded, attention, gru, to_logits):
    return to_logits(torch.cat((state, previous), dim=-1))


@BANK.mistake(
    "The logits are made without the sign before. The output layer reads three things: the new "
    "state, the context and that sign.",
    f"Join all three: {SCORE}.",
)
def logits_without_the_sign(state, previous, encoded, attention, gru, to_logits):
    context, _ = asked(state, encoded, attention)
    return to_logits(torch.cat((state, context), dim=-1))


@BANK.mistake(
    f"In the output layer's input the sign stands in front of the context. {BY_PLACE}",
    f"The order is state, context, sign: {SCORE}.",
)
def logits_with_the_sign_in_the_middle(state, previous, encoded, attention, gru, to_logits):
    context, weights = asked(state, encoded, attention)
    _, _, new_state = stepped(state, previous, context, weights, gru, to_logits)
    return to_logits(torch.cat((new_state, previous, context), dim=-1)), weights, new_state


@BANK.mistake(
    f"In the output layer's input the state stands last, behind sign and context. {BY_PLACE}",
    f"The order is state, context, sign: {SCORE}.",
)
def logits_with_the_state_last(state, previous, encoded, attention, gru, to_logits):
    context, weights = asked(state, encoded, attention)
    _, _, new_state = stepped(state, previous, context, weights, gru, to_logits)
    return to_logits(torch.cat((previous, context, new_state), dim=-1)), weights, new_state


@BANK.mistake(
    f"In the output layer's input the context stands first. {BY_PLACE}",
    f"The order is state, context, sign: {SCORE}.",
)
def logits_with_the_context_first(state, previous, encoded, attention, gru, to_logits):
    context, weights = asked(state, encoded, attention)
    _, _, new_state = stepped(state, previous, context, weights, gru, to_logits)
    return to_logits(torch.cat((context, new_state, previous), dim=-1)), weights, new_state


@BANK.mistake(
    "The old state comes back. The next step would ask the same question again, and forget the "
    "sign that was written.",
    "Return what the GRU returned: `return logits, weights, new_state`.",
)
def old_state_returned(state, previous, encoded, attention, gru, to_logits):
    logits, weights, _ = decoder_step(state, previous, encoded, attention, gru, to_logits)
    return logits, weights, state


@BANK.mistake(
    "Your logits have been through a softmax: they are probabilities. The loss takes the softmax "
    "itself, and two of them one after the other flatten its gradient.",
    "Return the scores as the output layer makes them.",
    lambda yours, right, inputs: f"Your first row sums to {yours[0][0].sum():.2f}.",
)
def softmax_of_the_logits(state, previous, encoded, attention, gru, to_logits):
    logits, *others = decoder_step(state, previous, encoded, attention, gru, to_logits)
    return logits.softmax(dim=-1), *others


@BANK.mistake(
    "These are the ids of the likeliest signs, and the logits were asked for. Training needs the "
    "score of every sign.",
    "Leave the `argmax` to the caller.",
)
def likeliest_sign(state, previous, encoded, attention, gru, to_logits):
    logits, *others = decoder_step(state, previous, encoded, attention, gru, to_logits)
    return logits.argmax(dim=-1), *others


@BANK.mistake(
    "The new state stands where the weights are due.",
    "Return them in the order of the chapter's step: `return logits, weights, new_state`.",
)
def state_in_front_of_the_weights(state, previous, encoded, attention, gru, to_logits):
    logits, weights, state = decoder_step(state, previous, encoded, attention, gru, to_logits)
    return logits, state, weights


@BANK.mistake(
    "The context comes back in place of the weights. It is their result: a row of key_dim numbers, "
    "and not a number for each letter.",
    f"The attention returns both: {ASK}. Return the second.",
)
def context_in_place_of_the_weights(state, previous, encoded, attention, gru, to_logits):
    logits, _, new_state = decoder_step(state, previous, encoded, attention, gru, to_logits)
    return logits, asked(state, encoded, attention)[0], new_state


@BANK.mistake(
    "The weights still have the axis of the queries, which is 1 long, since one step asks one "
    "question.",
    "Take it away, as from the context: `weights[:, 0]`.",
)
def axis_of_the_query_left(state, previous, encoded, attention, gru, to_logits):
    logits, weights, state = decoder_step(state, previous, encoded, attention, gru, to_logits)
    return logits, weights[:, None], state


@BANK.mistake(
    "The context still has the axis of the queries, (batch, 1, key_dim), and the sign before has "
    "none, so that the two cannot stand side by side.",
    "One step asks one question. Take the axis away: `context[:, 0]`.",
)
def context_with_the_axis_of_the_query(state, previous, encoded, attention, gru, to_logits):
    context, _ = attention(state[:, None], encoded)
    return torch.cat((previous, context), dim=-1)


@BANK.mistake(
    "The state goes in as it is, (batch, query_dim). The attention takes several queries for each "
    "sentence, (batch, query, query_dim).",
    f"Give the state an axis of size 1 for its one question: {ASK}.",
)
def no_axis_for_the_query(state, previous, encoded, attention, gru, to_logits):
    return attention(state, encoded)


@BANK.mistake(
    "The new axis stands in front, so that the batch is taken for one sentence with many "
    "questions.",
    f"It belongs behind the batch: {ASK}.",
)
def axis_in_front_of_the_batch(state, previous, encoded, attention, gru, to_logits):
    return attention(state[None], encoded)


@BANK.mistake(
    "The sign before is what asks. It says what was written last and not what is needed next, "
    "which the state knows.",
    f"The query is the state: {ASK}.",
)
def asks_with_the_sign(state, previous, encoded, attention, gru, to_logits):
    return attention(previous[:, None], encoded)


@BANK.mistake(
    "Query and keys have changed places: every letter asks the state.",
    f"The state asks and comes first: {ASK}.",
)
def query_and_keys_swapped(state, previous, encoded, attention, gru, to_logits):
    return attention(encoded, state[:, None])


@BANK.mistake(
    "The two results of the attention have changed places: what goes into the GRU are the weights.",
    f"The context comes first: {ASK}.",
)
def results_of_the_attention_swapped(state, previous, encoded, attention, gru, to_logits):
    _, weights = asked(state, encoded, attention)
    return gru(torch.cat((previous, weights), dim=-1), state)


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
