"""check_rotary_attention: a learner's own mistakes are named; where places begin is no mistake."""

import math

import pytest
import torch
from torch.nn import functional as F

import attention
from attention.checks import check_rotary_attention
from attention.checks.inputs import Numbers
from attention.checks.rotary_attention import TASK

pytestmark = pytest.mark.usefixtures("as_a_reader")


def turn(x, sign=1, first=0, width=None, seq=None, count=2):
    """From pair to pair, as chapter 10 does."""
    d_key = width or x.shape[-1]
    place = torch.arange(first, first + (seq or x.shape[-2]))
    components = []
    for i in range(x.shape[-1] // 2):
        angle = sign * place * 10000 ** (-count * i / d_key)
        a, b = x[..., 2 * i], x[..., 2 * i + 1]
        components.append(a * angle.cos() - b * angle.sin())
        components.append(a * angle.sin() + b * angle.cos())
    return torch.stack(components, dim=-1)


def as_it_is(x):
    return x


def mine(before=as_it_is, of_q=turn, of_k=turn, of_v=as_it_is, after=as_it_is, root=None):
    def function(q, k, v, n_heads, mask):
        q, k = before(q), before(k)
        q, k, v = (x.view(*x.shape[:2], n_heads, -1).transpose(1, 2) for x in (q, k, v))
        scores = of_q(q) @ of_k(k).mT / math.sqrt(root or q.shape[-1])
        weights = F.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
        output = weights @ of_v(v)
        return after(output.transpose(1, 2).flatten(2)), weights

    return function


def backwards(x):
    return turn(x, sign=-1)


def of_halves(x):
    rotary = attention.Rotary(x.shape[-1], halves=True)
    return rotary(x, x)[0]


def along_the_batch(x):
    return turn(x, seq=len(x))


def along_the_heads(x):
    return turn(x, seq=x.size(1))


def from_place(first):
    return lambda x: turn(x, first=first)


def of_width(q, k, v, n_heads, mask):
    def wide(x):
        return turn(x, width=q.shape[-1])

    return mine(of_q=wide, of_k=wide)(q, k, v, n_heads, mask)


def divided(by):
    return lambda *inputs: mine(root=by(*inputs))(*inputs)


def other_mask(change):
    return lambda q, k, v, n_heads, mask: mine()(q, k, v, n_heads, change(mask))


NAMED = {
    "values too": (mine(of_v=turn), "values_turned_too"),
    "before the split": (mine(turn, as_it_is, as_it_is), "turned_before_the_split"),
    "queries": (mine(of_k=as_it_is), "only_queries_turned"),
    "keys": (mine(of_q=as_it_is), "only_keys_turned"),
    "sum of places": (mine(of_k=backwards), "keys_turned_the_other_way"),
    "backwards": (mine(of_q=backwards, of_k=backwards), "both_turned_backwards"),
    "halves": (mine(of_q=of_halves, of_k=of_halves), "pairs_from_two_halves"),
    "nothing": (mine(of_q=as_it_is, of_k=as_it_is), "not_turned"),
    "batch": (mine(of_q=along_the_batch, of_k=along_the_batch), "places_of_the_batch"),
    "heads": (mine(of_q=along_the_heads, of_k=along_the_heads), "places_of_the_heads"),
    "exponent of d_model": (of_width, "angles_of_d_model"),
    "exponent of i": (
        mine(of_q=lambda x: turn(x, count=1), of_k=lambda x: turn(x, count=1)),
        "exponent_counts_pairs",
    ),
    "the output": (mine(as_it_is, as_it_is, as_it_is, after=turn), "merged_output_turned"),
    "root of d_model": (divided(lambda q, *_: q.shape[-1]), "scaled_by_d_model"),
    "no root": (divided(lambda *_: 1), "unscaled"),
    "wrong way round": (other_mask(torch.logical_not), "mask_inverted"),
    "no mask": (other_mask(torch.ones_like), "mask_left_out"),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_learners_mistake_is_named(name):
    function, mistake = NAMED[name]
    for seed in range(3):
        result = check_rotary_attention(function, seed=seed)
        assert result.mistakes == (mistake,), result


@pytest.mark.parametrize("first", [0, 1, -3, 100])
def test_where_the_places_begin_makes_no_difference(first):
    function = mine(of_q=from_place(first), of_k=from_place(first))
    for seed in range(3):
        assert check_rotary_attention(function, seed=seed).passed


def test_keys_one_place_ahead_do_not_pass():
    """The trap of the chapter: the task "nearest name" forgives it, numbers do not."""
    result = check_rotary_attention(mine(of_k=from_place(1)))
    assert not result.passed
    assert result.mistakes == ()


def test_the_right_one_knows_the_distance_alone():
    """Rows put in front and hidden by the mask change nothing behind them."""
    for case in TASK.cases(Numbers(0)):
        q, k, v, n_heads, mask = case.copies()
        seq = q.shape[1]
        front = torch.ones(q.shape[0], 3, q.shape[2])
        moved = (torch.cat((front, x), dim=1) for x in (q, k, v))
        wide = F.pad(mask.expand(len(q), 1, seq, seq), (3, 0, 3, 0))
        for due, got in zip(
            TASK.right(q, k, v, n_heads, mask), TASK.right(*moved, n_heads, wide), strict=True
        ):
            there = got[:, 3:] if got.ndim == 3 else got[..., 3:, 3:]
            torch.testing.assert_close(there, due)
