"""The scores that are drawn are those of the trained heads, and say what each looks for."""

import torch

from attention import split_heads
from attention.drawings import score_by_seat
from attention.trained import who_and_whom
from attention.trained.who_and_whom import NOUNS, VOCABULARY, new_sentences
from tests.unit.drawings.reading import assert_drawn

MODEL = who_and_whom.load(8, 2)


@torch.no_grad()
def in_every_seat(verb, words, askers=(2, 8), seats=12):
    """(asker, heads, word, seat), from sentences of one word throughout."""
    q, k = (
        split_heads(layer(MODEL.embed(VOCABULARY.encode_batch([[w] * seats for w in some]))), 2)
        for layer, some in ((MODEL.attention.w_q, [verb]), (MODEL.attention.w_k, words))
    )
    scores = q @ k.transpose(-2, -1) / 2  # (word, heads, query, seat)
    return scores[:, :, list(askers)].permute(2, 1, 0, 3)


def test_the_points_stand_at_the_scores():
    scores = in_every_seat("chased", ["ball", "the"])
    answers = [("who", [[1], [7]]), ("whom", [[4, 5], [10, 11]])]
    drawing = score_by_seat(scores, ["ball", "the"], ["seat 2", "seat 8"], answers)
    expected = {
        f"head {h}, {word}, seat {seat}": scores[a, h, w]
        for h in range(2)
        for a, seat in enumerate((2, 8))
        for w, word in enumerate(["ball", "the"])
    }
    assert_drawn(drawing, expected, atol=0.02)


def test_each_noun_scores_highest_where_the_head_finds_its_answer():
    """The chapter says it of all nouns and verbs: of the seats of nouns, the asker's own answers.

    A verb in seat 2 asks of its own clause and of the other; one in seat 8 has both before it.
    """
    two = [one for one in new_sentences() if len(one.verbs) == 2]
    asked = {
        place: [
            (one, verb)
            for one in two
            for verb in one.verbs
            if verb.place == place and verb.whom is not None
        ]
        for place in (2, 8)
    }
    for verb in ("chased", "saw", "hid"):
        scores = in_every_seat(verb, NOUNS)  # (asker, heads, noun, seat)
        for a, places in enumerate(asked.values()):
            nouns = {i for one, _ in places for i, word in enumerate(one.tokens) if word in NOUNS}
            for h, answer in enumerate(("who", "whom")):
                seats = {getattr(each, answer) for _, each in places}
                others = sorted(seat for seat in nouns - seats if seat < 12)
                worst = scores[a, h][:, sorted(seats)].amin(dim=-1)
                assert (worst > scores[a, h][:, others].amax(dim=-1)).all()
