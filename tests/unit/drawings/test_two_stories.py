"""The lines are as wide as the model's probabilities, and go to the words that it names."""

import re

import pytest
import torch

from attention.drawings import two_stories
from attention.trained import who_and_whom
from attention.trained.who_and_whom import VOCABULARY, find_verbs
from tests.unit.drawings.reading import assert_drawn

STORY = ["a", "dog", "chased", "the", "red", "ball"]
STORIES = [STORY, [*STORY[3:], "chased", "a", "dog"]]
VERBS = [find_verbs(story)[0] for story in STORIES]


def probabilities(variant):
    """who and whom, each (story, seq), from one story at a time."""
    model = who_and_whom.load(variant=variant).requires_grad_(False)
    who, whom = [], []
    for story, verb in zip(STORIES, VERBS, strict=True):
        ids = VOCABULARY.encode_batch([story])
        reply = model(ids, torch.tensor([verb]))
        for answers, logits in ((who, reply.who), (whom, reply.whom)):
            powers = logits[0].exp()
            answers.append((powers / powers.sum())[ids[0]])
    return torch.stack(who), torch.stack(whom)


def expected(who, whom):
    return {
        f"{name} {nth}": rows[nth]
        for nth in (0, 1)
        for name, rows in (("who", who), ("whom", whom))
    }


@pytest.mark.parametrize("variant", [None, "no-positions"])
def test_lines_are_as_wide_as_probabilities(variant):
    who, whom = probabilities(variant)
    assert_drawn(two_stories(STORIES, VERBS, who, whom), expected(who, whom))


def test_who_and_whom_exchanged_are_seen():
    who, whom = probabilities(None)
    with pytest.raises(AssertionError):
        assert_drawn(two_stories(STORIES, VERBS, whom, who), expected(who, whom))


def test_without_positions_both_stories_have_the_same_answers_written():
    said = re.findall(
        r">(whom? \.?[\d.]+)<", two_stories(STORIES, VERBS, *probabilities("no-positions")).wide
    )
    assert len(said) == 8
    assert sorted(said[:4]) == sorted(said[4:])
