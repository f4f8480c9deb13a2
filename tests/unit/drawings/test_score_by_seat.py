"""The scores that are drawn are those of the trained heads, and say what each looks for."""

import torch

from attention import split_heads
from attention.drawings import score_by_seat
from attention.trained import who_and_whom
from attention.trained.who_and_whom import NOUNS, VOCABULARY, new_sentences
from tests.unit.drawings.reading import assert_drawn

MODEL = who_and_whom.load(8, 2)


@torch.no_grad()
def in_every_seat(verb, words, askers=(2, 3), seats=8):
    """(asker, heads, word, seat), from sentences of one word throughout."""
    q, k = (
        split_heads(layer(MODEL.embed(VOCABULARY.encode_batch([[w] * seats for w in some]))), 2)
        for layer, some in ((MODEL.attention.w_q, [verb]), (MODEL.attention.w_k, words))
    )
    scores = q @ k.transpose(-2, -1) / 2  # (word, heads, query, seat)
    return scores[:, :, list(askers)].permute(2, 1, 0, 3)


def test_the_points_stand_at_the_scores():
    scores = in_every_seat("chased", ["ball", "the"])
    drawing = score_by_seat(
        scores, ["ball", "the"], ["seat 2", "seat 3"], [("who", [1, 2]), ("whom", [4, 5, 6])]
    )
    expected = {
        f"head {h}, {word}, seat {2 + a}": scores[a, h, w]
        for h in range(2)
        for a in range(2)
        for w, word in enumerate(["ball", "the"])
    }
    assert_drawn(drawing, expected, atol=0.02)


def test_each_noun_scores_highest_where_the_head_finds_its_answer():
    """The chapter says it of all nouns and verbs, whichever seat asks."""
    two_nouns = [one for one in new_sentences(8, 500) if one.whom is not None]
    seats = {one.who for one in two_nouns}, {one.whom for one in two_nouns}
    assert seats == ({1, 2}, {4, 5, 6})
    for verb in ("chased", "saw", "hid"):
        scores = in_every_seat(verb, NOUNS)  # (asker, heads, noun, seat)
        for h, answers in enumerate(seats):
            best = scores[:, h].argsort(dim=-1, descending=True)[..., : len(answers)]
            assert set(best.flatten().tolist()) == answers
