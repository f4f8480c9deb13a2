"""The reader's head beside loops over words, and what no setting of it can do."""

import itertools
import math

import pytest
import torch

from attention.explore import be_the_head_explorer
from attention.explore.be_the_head import (
    ALL_NOUNS,
    LIKED,
    QUESTIONS,
    STORED,
    answers,
    count_right,
    encode,
    is_noun,
    scores,
    two_verb_sentences,
)
from tests.unit.explore.test_explore import frame, stored

SETTINGS = [(5, 3, 6, 1, 2, 4), (2, 0, 0, 0, 3, 3), (0, 0, 2, 0, 2, 0), (3, 1, 0, 6, 0, 2)]
COARSE = list(itertools.product((0, 3, 6), repeat=6))


@pytest.fixture(scope="module")
def explorer():
    return be_the_head_explorer()


@pytest.fixture(scope="module")
def sentences():
    return two_verb_sentences()


@pytest.fixture(scope="module")
def asked(sentences):
    return encode(sentences)


def by_hand(tokens, verb, likes, from_the_verb):
    """The score of each word, one liking after the other."""
    noun, two_before, one_before, one_after, two_after, three_after = likes
    seats = {-2: two_before, -1: one_before, 1: one_after, 2: two_after, 3: three_after}
    found = []
    for place, token in enumerate(tokens):
        if from_the_verb:
            seat = seats.get(place - verb, 0)
        else:
            seat = likes[1 + place] if place < 5 else 0
        found.append((noun if token in ALL_NOUNS else 0) + seat)
    return found


def test_there_are_500_sentences_with_two_verbs_each(sentences):
    assert len(sentences) == 500 and all(len(each.verbs) == 2 for each in sentences)
    words = {token for each in sentences for token in each.tokens}
    assert {"dawn", "<unk>", "birds", "cat"} <= words & set(ALL_NOUNS)
    for each in sentences:
        for _, who, whom in each.verbs:
            assert each.tokens[who] in ALL_NOUNS
            assert whom is None or each.tokens[whom] in ALL_NOUNS


@pytest.mark.parametrize("from_the_verb", [False, True])
@pytest.mark.parametrize("likes", SETTINGS)
def test_counts_are_those_of_loops(sentences, asked, likes, from_the_verb):
    right = dict.fromkeys(QUESTIONS, 0)
    for tokens, verbs in sentences:
        for verb in verbs:
            found = by_hand(tokens, verb.place, likes, from_the_verb)
            given = found.index(max(found)) if found.count(max(found)) == 1 else None
            for question in QUESTIONS:
                wanted = getattr(verb, question)
                right[question] += wanted is not None and given == wanted
    for question in QUESTIONS:
        found = count_right(asked, question, likes, from_the_verb=from_the_verb)
        assert found == right[question], question


@pytest.mark.parametrize("from_the_verb", ["off", "on"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_stored_frames_hold_the_weights_of_loops(explorer, sentences, question, from_the_verb):
    held = frame(explorer, question=question, from_the_verb=from_the_verb)
    likes = STORED[question]
    assert list(held["setting"].items()) == [
        (name, str(like)) for name, like in zip(LIKED, likes, strict=True)
    ]
    assert len(set(likes)) == len(likes), "a page that takes one for another would not be noticed"
    assert [held["tokens"][place] for place in held["asking"]] == ["saw", "chased"]
    for nth, verb in enumerate(held["asking"]):
        found = by_hand(held["tokens"], verb, likes, from_the_verb == "on")
        total = sum(map(math.exp, found))
        expected = torch.tensor([[math.exp(score) / total] for score in found])
        torch.testing.assert_close(stored(explorer, held["weights"])[nth], expected)
        assert held["answers"][nth] == found.index(max(found))
    of = sum(getattr(verb, question) is not None for each in sentences for verb in each.verbs)
    assert held["of"] == of == {"who": 1000, "whom": 906}[question]
    assert stored(explorer, held["share"]).item() == pytest.approx(held["right"] / of)
    assert held["right"] > 0, "a bar without a length could not be compared"


def test_several_words_with_the_largest_score_are_no_answer():
    assert answers(torch.tensor([[0.0, 2, 1], [2, 0, 2], [-torch.inf, 0, 0]])).tolist() == [
        1,
        -1,
        -1,
    ]


def test_padding_gets_no_weight():
    nouns = torch.tensor([*is_noun(["the", "cat", "saw", "the", "dog"]), -1.0, -1.0])
    made = scores(nouns, torch.tensor([2]), (2, 0, 0, 0, 3, 6), from_the_verb=True)
    assert made.softmax(-1)[0, 5:].tolist() == [0, 0] and answers(made).tolist() == [4]


@pytest.mark.parametrize("question", QUESTIONS)
def test_counted_from_the_start_no_setting_gets_above_one_half(asked, question):
    of = int((getattr(asked, question) >= 0).sum())
    right = max(count_right(asked, question, likes, from_the_verb=False) for likes in COARSE)
    assert right / of <= 0.5
    assert right == {"who": 500, "whom": 144}[question]


@pytest.mark.parametrize(
    ("question", "likes"), [("who", (0, 0, 3, 0, 0, 0)), ("whom", (3, 0, 0, 0, 3, 3))]
)
def test_counted_from_the_verb_some_setting_gets_nearly_all(asked, question, likes):
    of = int((getattr(asked, question) >= 0).sum())
    assert count_right(asked, question, likes, from_the_verb=True) / of > 0.95
    assert count_right(asked, question, likes, from_the_verb=False) / of < 0.3


def test_for_whom_seats_alone_are_not_enough(asked):
    """Adjectives stand where nouns may stand: the key has to say which of them is one.

    Best is "3 after", and less of "2 after", which is left where the sentence ends there: 65 %.
    """
    seats = [likes for likes in COARSE if likes[0] == 0]
    right = max(count_right(asked, "whom", likes, from_the_verb=True) for likes in seats)
    assert right == 590


def test_it_starts_with_a_liking_for_nouns_alone(explorer):
    at = {name: control.value for name, control in explorer.controls.items()}
    assert at.pop("question") == "who" and at.pop("from_the_verb") is False
    assert at == dict.fromkeys(LIKED, 0) | {"noun": 2}
    (weights,) = explorer.still.values.values()
    nouns = [1, 4, 7, 11]
    expected = [math.exp(2) if place in nouns else 1 for place in range(12)]
    torch.testing.assert_close(
        weights, torch.tensor([[each / sum(expected) for each in expected]] * 2).double()
    )
    assert f"{weights[0, 1]:.2f}, to" in explorer.still.alt
    assert f"and {weights[0, 0]:.2f} to every" in explorer.still.alt
