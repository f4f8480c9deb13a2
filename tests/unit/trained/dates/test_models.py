"""The date models: their stored weights, what the recurrent ones and the transformers write."""

import functools

import pytest
import torch

from attention.trained.dates import (
    ANSWER,
    LENGTHS,
    LETTERS,
    LONGEST,
    MODELS,
    SIGNS,
    START,
    WEIGHTS,
    TransformerDates,
    alignment,
    attention_of,
    encode,
    held_out_dates,
    load,
    measure,
    measured,
    right,
    train,
    without_head,
)

DATES = held_out_dates()
ATTENTIVE = [name for name in MODELS if "last-state" not in name]
NARROW = [name for name in MODELS if name.startswith("narrow-")]
TRANSFORMERS = [name for name in MODELS if name.startswith("transformer")]


@functools.cache
def measured_now(name):
    return measure(load(name), DATES)


@pytest.mark.one_in(3)
@pytest.mark.slow  # writes thousands of dates
@pytest.mark.parametrize("name", MODELS)
def test_the_stored_weights_do_what_training_measured(name):
    now, stored = measured_now(name), measured(name)
    assert now.exact == pytest.approx(stored.exact, abs=0.002)
    assert now.by_length == pytest.approx(stored.by_length, abs=0.01)
    assert now.without == pytest.approx(stored.without, abs=0.004)
    for head, was in zip(now.heads, stored.heads, strict=True):
        assert head == pytest.approx(was, abs=0.002)


@pytest.mark.parametrize("name", MODELS)
def test_the_exact_match_is_that_of_dates_read_as_text(name):
    """Sign by sign, without the ids: what is counted is what a reader would count."""
    model, dates = load(name), DATES[:300]
    written = ["".join(SIGNS.decode(row)) for row in model.write(encode(dates)[0])]
    correct = [text == f"{date.iso}<end>" for text, date in zip(written, dates, strict=True)]
    assert right(model, dates).tolist() == correct


def test_attention_reaches_in_as_many_steps_what_the_last_state_does_not():
    """With three times as many steps the last state gets there too: it learns more slowly."""
    share = {name: measured(name).exact for name in MODELS}
    assert min(share[name] for name in ATTENTIVE if name not in NARROW) >= 0.98
    assert share["last-state"] < 0.8 < 0.99 < share["last-state-longer"]
    # A longer date says no more than a shorter one: the last state loses as much of either.
    assert max(measured("last-state").by_length) < 0.8


def test_twelve_numbers_take_long_to_learn_and_hold_a_date_in_the_end():
    """Chapter 9: 1, 13 and 77 of 100 after 500, 1,500 and 6,000 steps."""
    share = {name: measured(name).exact for name in NARROW}
    assert share["narrow-last-state"] < 0.03
    assert share["narrow-last-state-longer"] < 0.2
    assert share["narrow-last-state-longest"] > 0.7
    assert min(share[name] for name in NARROW if name in ATTENTIVE) > 0.85


def test_the_groups_of_lengths_are_what_they_are_called():
    stored = measured_now("last-state")
    dates = [date for date in DATES if 20 < len(date.text) <= 30]
    share = right(load("last-state"), dates).double().mean().item()
    assert len(stored.by_length) == len(LENGTHS) + 1
    assert share == pytest.approx(stored.by_length[1], abs=0.005)


def test_the_recurrent_models_are_of_like_size():
    count = {name: sum(x.numel() for x in MODELS[name]().parameters()) for name in MODELS}
    wide = [count[name] for name in MODELS if name not in (*NARROW, *TRANSFORMERS)]
    narrow = [count[name] for name in NARROW]
    assert max(wide) == count["last-state"] == count["last-state-longer"] < 1.3 * min(wide)
    assert max(narrow) == count["narrow-last-state"] < 1.3 * min(narrow)
    for name in ("narrow-last-state", "narrow-additive", "narrow-general", "narrow-concat"):
        assert MODELS[name]().decoder.key_dim == 12
    assert count["transformer"] == count["transformer-1-head"]


def test_where_the_attention_lies_is_no_accident():
    """Weights that are the same for all letters lie on the right ones to a quarter."""
    letters, _ = encode(DATES)
    is_letter = (letters != LETTERS.pad_id).float()
    evenly = (is_letter / is_letter.sum(1, keepdim=True))[:, None].expand(-1, ANSWER, -1)
    assert alignment(evenly, DATES).mean < 0.35
    for name in ATTENTIVE:
        assert max(head.mean for head in measured(name).heads) > 0.6, name


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_greedy_writes_the_likeliest_sign_of_teacher_forcing_on_its_own_signs(name):
    model, letters = load(name), encode(DATES[:40])[0]
    written = model.write(letters)
    assert written.shape == (40, ANSWER)
    fed = torch.cat((torch.full((40, 1), START), written[:, :-1]), dim=1)
    logits, weights = model(letters, fed)
    assert torch.equal(written, logits.argmax(-1))
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
    # Alone, without the padding that longer dates in the batch bring.
    alone = letters[:1, : len(DATES[0].text)]
    assert torch.equal(model.write(alone), written[:1])


def test_what_is_measured_without_a_head_is_the_exact_match_without_it():
    model, stored = load("transformer"), measured("transformer")
    assert len(stored.without) == len(stored.heads) == 4
    worst = min(range(4), key=lambda head: stored.without[head])
    left = right(without_head(model, worst), DATES).double().mean().item()
    assert left == pytest.approx(stored.without[worst], abs=0.004)
    assert left < stored.exact - 0.02


def test_the_weights_are_those_of_the_steps_of_the_answer():
    dates = DATES[:9]
    for name, heads in (("additive", 1), ("transformer", 4)):
        weights = attention_of(load(name), dates)
        assert weights.shape == (9, heads, ANSWER, max(len(date.text) for date in dates))
        for row, date in zip(weights, dates, strict=True):
            assert not row[..., len(date.text) :].any()


def test_there_is_a_file_for_each_model():
    assert {path.stem for path in WEIGHTS.iterdir()} == set(MODELS)


def test_no_date_is_longer_than_the_longest():
    assert max(len(date.text) for date in DATES) <= LONGEST


@pytest.mark.usefixtures("as_a_reader")
def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="no weights are stored for 'luong'; it can be last-state"):
        load("luong")
    with pytest.raises(ValueError, match="there is no model 'luong'; it can be last-state, "):
        train("luong", seed=0)
    assert isinstance(load("transformer"), TransformerDates)
