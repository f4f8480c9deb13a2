"""What is drawn as erased and written is what the two rules of the book leave in a state."""

import pytest
import torch

from attention import decayed_linear_attention, gated_delta_rule
from attention.drawings import erase_then_write
from tests.unit.drawings.reading import assert_drawn

KEY, VALUE = torch.tensor([0.6, 0.8, 0.0]), torch.tensor([1.0, 5.0, -2.0])
STATE = torch.tensor([[4.0, 0, 2], [0, -3, 1], [0, 1, 0]])


def rule(function, *gate):
    tokens = (x[None, None, None] for x in (KEY, KEY, VALUE))
    _, state = function(*tokens, *gate, state=STATE[None, None])
    return state[0, 0]


@pytest.mark.parametrize("beta", [1.0, 0.25])
def test_the_new_states_are_those_of_the_rules(beta):
    after_sum = rule(decayed_linear_attention, torch.ones(1, 1, 1))
    after_delta = rule(gated_delta_rule, torch.full((1, 1, 1), beta))
    assert_drawn(
        erase_then_write(STATE, KEY, VALUE, beta),
        {
            "sum state": STATE,
            "sum write": torch.outer(KEY, VALUE),
            "sum new": after_sum,
            "delta state": STATE,
            "delta erase": beta * torch.outer(KEY, KEY @ STATE),
            "delta write": beta * torch.outer(KEY, VALUE),
            "delta new": after_delta,
        },
    )


def test_the_words_say_what_each_rule_answers():
    drawing = erase_then_write(torch.eye(2), torch.tensor([1.0, 0]), torch.tensor([0.0, 3]))
    assert "answers the key with 1.0, 3.0" in drawing.alt
    assert "takes away what the state answers to the key, 1.0, 0.0" in drawing.alt
    assert "answers 0.0, 3.0; the value was 0.0, 3.0" in drawing.alt


def test_nothing_erased_would_be_seen():
    drawing = erase_then_write(STATE, KEY, VALUE)
    with pytest.raises(AssertionError):
        assert_drawn(drawing, {**drawing.values, "delta new": drawing.values["sum new"]})
