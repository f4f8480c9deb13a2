"""check_decoder_step: the book's decoder passes, and a learner's own mistakes are named."""

import pytest
import torch

from attention.checks import check_decoder_step
from attention.checks.decoder_step import TASK, decoder_step
from attention.checks.inputs import Numbers
from attention.trained.dates import encode, held_out_dates, load

pytestmark = pytest.mark.usefixtures("as_a_reader")


def test_with_the_stored_models_parts_it_is_the_modules_decoder():
    """Teacher forcing over all signs of some dates, step by step and in one call."""
    model = load("narrow-additive").requires_grad_(False).double()
    dates = [date for date in held_out_dates() if len(date.text) == 29][:3]  # no padding
    letters, signs = encode(dates)
    encoded = model.encoder(letters)
    decoder = model.decoder
    due, due_weights = decoder(signs[:, :-1], encoded)
    state = decoder.first_state(encoded)
    for i in range(signs.shape[1] - 1):
        previous = decoder.embed(signs[:, i : i + 1])[:, 0]
        logits, weights, state = decoder_step(
            state, previous, encoded, decoder.attention, decoder.cell, decoder.w_o
        )
        torch.testing.assert_close(logits, due[:, i])
        torch.testing.assert_close(weights, due_weights[:, i])


def mine(
    query=lambda state, previous, gru: state.unsqueeze(1),
    bring=lambda context, encoded: context.squeeze(1),
    step=lambda gru, previous, context, state: gru(torch.cat([previous, context], 1), state),
    read=lambda old, new, context, previous: [new, context, previous],
    give=lambda logits, weights, old, new: (logits, weights.squeeze(1), new),
):
    """The step as a learner writes it, with a place for each mistake."""

    def function(state, previous, encoded, attention, gru, to_logits):
        context, weights = attention(query(state, previous, gru), encoded)
        context = bring(context, encoded)
        new = step(gru, previous, context, state)
        logits = to_logits(torch.cat(read(state, new, context, previous), 1))
        return give(logits, weights, state, new)

    return function


def step_first(state, previous, encoded, attention, gru, to_logits):
    new = gru(previous, state)
    context, weights = attention(new[:, None], encoded)
    return to_logits(torch.cat([new, context[:, 0], previous], -1)), weights[:, 0], new


def mean_by_hand(context, encoded):
    return sum(encoded.unbind(1)) / encoded.size(1)


NAMED = {
    "step first": (step_first, "gru_without_the_context"),
    "the state alone": (mine(query=lambda s, p, gru: s), "no_axis_for_the_query"),
    "unsqueezed in front": (
        mine(query=lambda s, p, gru: s.unsqueeze(0)),
        "axis_in_front_of_the_batch",
    ),
    "the sign asks": (mine(query=lambda s, p, gru: p.unsqueeze(1)), "asks_with_the_sign"),
    "axis kept": (mine(bring=lambda c, e: c), "context_with_the_axis_of_the_query"),
    "last row": (mine(bring=lambda c, e: e[:, e.shape[1] - 1]), "context_of_the_last_row"),
    "mean": (mine(bring=mean_by_hand), "context_is_the_plain_mean"),
    "context first": (
        mine(step=lambda gru, p, c, s: gru(torch.hstack((c, p)), s)),
        "context_in_front_of_the_sign",
    ),
    "no state": (mine(step=lambda gru, p, c, s: gru(torch.hstack((p, c)))), "gru_from_zeros"),
    "state first": (
        mine(step=lambda gru, p, c, s: gru(s, torch.hstack((p, c)))),
        "gru_arguments_swapped",
    ),
    "the paper's logits": (
        mine(read=lambda old, new, c, p: [old, c, p]),
        "logits_of_the_old_state",
    ),
    "as the GRU reads": (
        mine(read=lambda old, new, c, p: [p, c, new]),
        "logits_with_the_state_last",
    ),
    "no sign": (mine(read=lambda old, new, c, p: [new, c]), "logits_without_the_sign"),
    "no context": (mine(read=lambda old, new, c, p: [new, p]), "logits_without_the_context"),
    "the new state alone": (mine(read=lambda old, new, c, p: [new]), "logits_of_the_state_alone"),
    "old state": (
        mine(give=lambda logits, w, old, new: (logits, w.squeeze(1), old)),
        "old_state_returned",
    ),
    "softmax": (
        mine(give=lambda logits, w, old, new: (torch.softmax(logits, 1), w.squeeze(1), new)),
        "softmax_of_the_logits",
    ),
    "weights as they are": (
        mine(give=lambda logits, w, old, new: (logits, w, new)),
        "axis_of_the_query_left",
    ),
    "no weights": (
        mine(give=lambda logits, w, old, new: (logits, new)),
        "state_in_front_of_the_weights",
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_learners_mistake_is_named(name):
    function, mistake = NAMED[name]
    for seed in range(3):
        result = check_decoder_step(function, seed=seed)
        assert result.mistakes == (mistake,), result


def test_a_learners_right_one_passes():
    for seed in range(5):
        assert check_decoder_step(mine(), seed=seed).passed


@pytest.mark.parametrize("seed", range(30))
def test_no_two_widths_that_an_error_tells_agree(seed):
    """Errors say widths, and a mistake is known by them alone."""
    for case in TASK.cases(Numbers(seed)):
        query, sign = (case.inputs[name].shape[1] for name in ("state", "previous"))
        keys, key = case.inputs["encoded"].shape[1:]
        assert len({sign, key, query, sign + keys}) == 4  # what may go into the GRU
        assert len({query, query + sign, query + key}) == 3  # and into the output layer
