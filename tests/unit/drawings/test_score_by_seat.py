"""The scores that are drawn are those of the trained heads, and say what each looks for."""

import pytest
import torch

from attention.drawings import score_by_seat
from attention.trained import who_and_whom
from attention.trained.who_and_whom import NOUNS, VERBS, VOCABULARY, find_verbs, new_sentences
from tests.unit.drawings.reading import assert_drawn

MODEL = who_and_whom.load(8, 2)
SENTENCE = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "chased", "the", "other", "cat"]
ASKERS = [("saw", 2), ("chased", 8)]
ANSWERS = [("who", [-1]), ("whom", [2, 3])]  # by head: seats after the verb
WORDS = ["cat", "the"]


@torch.no_grad()
def in_every_seat(askers, words):
    """(asker, heads, word, seat), one number at a time."""
    place = MODEL.positional_encoding(torch.zeros(1, len(SENTENCE), 8))[0]

    def row(word, seat):
        return MODEL.embedding(torch.tensor([[VOCABULARY.ids[word]]]))[0, 0] + place[seat]

    scores = torch.empty(len(askers), 2, len(words), len(SENTENCE))
    for a, asker in enumerate(askers):
        q = MODEL.attention.w_q(row(*asker))
        for w, word in enumerate(words):
            for seat in range(len(SENTENCE)):
                k = MODEL.attention.w_k(row(word, seat))
                scores[a, :, w, seat] = (q * k).view(2, 4).sum(-1)
    return scores


def expected(scores):
    return {
        f"head {h}, {asker}, {word}": scores[a, h, w]
        for h in range(2)
        for a, (asker, _) in enumerate(ASKERS)
        for w, word in enumerate(WORDS)
    }


def test_the_points_stand_at_the_scores():
    scores = in_every_seat(ASKERS, WORDS)
    assert_drawn(score_by_seat(scores, WORDS, ASKERS, ANSWERS), expected(scores))


def test_the_askers_exchanged_are_seen():
    scores = in_every_seat(ASKERS, WORDS)
    with pytest.raises(AssertionError):
        assert_drawn(score_by_seat(scores.flip(0), WORDS, ASKERS, ANSWERS), expected(scores))


def test_it_names_the_seats_of_the_answers_and_what_stands_there():
    scores = in_every_seat(ASKERS, WORDS)
    alt = score_by_seat(scores, WORDS, ASKERS, ANSWERS).alt
    assert f"where who stands, seat 7, “cat” scores {scores[1, 0, 0, 7]:.1f}" in alt
    assert f"where whom stands, seat 4 and 5, “cat” scores {scores[0, 1, 0, 4]:.1f}" in alt


def test_the_hill_moves_with_the_verb_that_asks():
    """Of the seats of the four nouns, each noun scores highest in that of the verb's answer."""
    assert find_verbs(SENTENCE) == [seat for _, seat in ASKERS]
    nouns = [i for i, word in enumerate(SENTENCE) if word in NOUNS]
    for verb in VERBS:
        scores = in_every_seat([(verb, seat) for _, seat in ASKERS], NOUNS)[..., nouns]
        best = scores.argmax(dim=-1)  # (asker, heads, noun)
        for a, heads in enumerate([[1, 4], [7, 11]]):
            for h, answer in enumerate(heads):
                assert (best[a, h] == nouns.index(answer)).all()


def test_answers_stand_where_the_drawing_says():
    """The chapter says it of all sentences that are drawn."""
    verbs = [verb for sentence in new_sentences(8) for verb in sentence.verbs]
    assert {verb.who - verb.place for verb in verbs} == {*ANSWERS[0][1]}
    assert {verb.whom - verb.place for verb in verbs if verb.whom is not None} == {*ANSWERS[1][1]}
