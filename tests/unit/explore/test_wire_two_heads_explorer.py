"""The wired heads beside rules that look up letters and places in lists, without attention."""

import functools
import itertools
import math
import re
from fractions import Fraction

import pytest
import torch

from attention.explore import wire_two_heads_explorer
from attention.explore.wire_two_heads import (
    BEFORE,
    COUNT,
    LETTERS,
    PLACE,
    TOKEN,
    WROTE,
    due,
    repeating_sequences,
)
from tests.unit.explore.test_explore import frame, stored

FIRST = list(itertools.product((TOKEN, PLACE, BEFORE), (TOKEN, PLACE), (TOKEN, PLACE)))
SECOND = list(itertools.product((TOKEN, WROTE), (TOKEN, BEFORE, WROTE), (TOKEN, WROTE)))
BY_KEYS = (BEFORE, PLACE, TOKEN), (TOKEN, WROTE, TOKEN)
BY_QUERIES = (TOKEN, TOKEN, PLACE), (WROTE, BEFORE, TOKEN)


@pytest.fixture(scope="module")
def explorer():
    return wire_two_heads_explorer()


@pytest.fixture(scope="module")
def sequences():
    return ["".join(LETTERS[i] for i in row) for row in repeating_sequences(COUNT).tolist()]


@pytest.fixture(scope="module")
def patterns(sequences):
    return [renamed(sequence) for sequence in sequences]


def held(explorer, first, second=None):
    names = ("query", "key", "copies")
    ends = {f"{name}_0": part for name, part in zip(names, first, strict=True)}
    ends |= {f"{n}_1": part for n, part in zip(names, second or SECOND[0], strict=True)}
    return frame(explorer, layers="2" if second else "1", **ends)


def parts_of(sequence):
    """What each row holds: for each part and row the share of each letter or place."""
    return {
        TOKEN: [{letter: Fraction(1)} for letter in sequence],
        PLACE: [{place: Fraction(1)} for place in range(len(sequence))],
        BEFORE: [{place - 1: Fraction(1)} if place else {} for place in range(len(sequence))],
    }


def looked_up(parts, query, key, copies, rows):
    """Each row copies from the rows up to it that agree best with it; equal ones share."""
    results, looks = [], []
    for i in rows:
        agree = [
            sum(share * answers.get(what, 0) for what, share in parts[query][i].items())
            for answers in parts[key][: i + 1]
        ]
        best = [j for j, each in enumerate(agree) if each == max(agree)]
        result = {}
        for j in best:
            for what, share in parts[copies][j].items():
                result[what] = result.get(what, 0) + share / len(best)
        results.append(result)
        looks.append([Fraction(j in best, len(best)) for j in range(len(parts[query]))])
    return results, looks


def layer_0(sequence, first):
    return looked_up(parts_of(sequence), *first, range(len(sequence)))


def layer_1(sequence, first, second, rows):
    wrote, _ = layer_0(sequence, first)
    return looked_up(parts_of(sequence) | {WROTE: wrote}, *second, rows)


@functools.cache
def answered(sequence, first, second=None):
    """The letters that lead in the last row."""
    last = [len(sequence) - 1]
    results, _ = layer_1(sequence, first, second, last) if second else layer_0(sequence, first)
    shares = {what: share for what, share in results[-1].items() if isinstance(what, str)}
    return {letter for letter, share in shares.items() if share == max(shares.values())}


def renamed(sequence):
    """With its letters named a, b, c … in turn: the rules ask only which of them are equal."""
    return "".join("abcdefg"[sequence.index(letter)] for letter in sequence)


def followed(sequence):
    return re.search(f"{sequence[-1]}(.)", sequence)[1]


def test_one_letter_comes_twice_and_what_followed_is_due(sequences):
    found = [LETTERS[i] for i in due(repeating_sequences(COUNT)).tolist()]
    assert len(set(sequences)) == COUNT == 500
    for sequence, answer in zip(sequences, found, strict=True):
        assert len(sequence) == 8 and len(set(sequence)) == 7
        assert 1 <= sequence.index(sequence[-1]) <= 5
        assert followed(sequence) == answer


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("second", [None, *SECOND])
def test_every_wiring_holds_what_the_rules_look_up(explorer, patterns, first, second):
    shown = held(explorer, first, second)
    example = "".join(shown["tokens"])
    wrote, looks = layer_0(example, first)
    assert shown["wrote"] == [
        "+".join(sorted(map(str, row))) if len(row) < 3 else "mix" for row in wrote
    ]
    assert_close(stored(explorer, shown["layer0"]), looks)
    if second:
        _, looks = layer_1(example, first, second, range(len(example)))
        assert_close(stored(explorer, shown["layer1"]), looks)
    assert ("layer1" in shown) == (second is not None)
    assert (set(shown["answer"]), shown["due"]) == (answered(example, first, second), "x")
    right = sum(answered(each, first, second) == {followed(each)} for each in patterns)
    assert (shown["right"], shown["of"]) == (right, COUNT)


def assert_close(found, looks):
    expected = torch.tensor([[float(weight) for weight in row] for row in looks])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_two_wirings_of_144_solve_it_and_no_other_is_better_than_a_guess(explorer):
    counts = {
        wiring: held(explorer, *wiring)["right"] for wiring in itertools.product(FIRST, SECOND)
    }
    assert len(counts) == 144
    assert {wiring for wiring, right in counts.items() if right == COUNT} == {BY_KEYS, BY_QUERIES}
    # What followed stands at one of five places: a guess by the place alone gets a fifth.
    others = [right for wiring, right in counts.items() if wiring not in (BY_KEYS, BY_QUERIES)]
    assert max(others) < COUNT / 5 + 4 * math.sqrt(COUNT * 0.2 * 0.8)


def test_one_layer_is_right_only_where_the_answer_stands_before_the_last(explorer, sequences):
    counts = {first: held(explorer, first)["right"] for first in FIRST}
    looks_back = (BEFORE, PLACE, TOKEN)
    assert counts.pop(looks_back) == sum(s[-2] == followed(s) for s in sequences) == 102
    assert set(counts.values()) == {0}


def test_it_starts_at_a_wrong_wiring_in_two_layers(explorer):
    start = {name: control.value for name, control in explorer.controls.items()}
    assert start.pop("layers") == 2
    shown = held(explorer, tuple(start.values())[:3], tuple(start.values())[3:])
    assert shown["right"] == 0 and shown["answer"] == ["k"]
    # What the still picture's text says.
    for name in ("layer0", "layer1"):
        expected = torch.eye(8)
        expected[7, 2] = expected[7, 7] = 0.5
        torch.testing.assert_close(stored(explorer, shown[name]), expected)
