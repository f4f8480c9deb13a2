"""The explorer of positions: its frames hold what the models compute, and a refusal."""

import pytest
import torch

from attention.explore import positions_explorer
from attention.trained import last_speaker
from attention.trained.last_speaker import NAMES, SCHEMES, WORDS, accuracy, new_talks
from tests.unit.explore.test_explore import frame, stored

ANN, QUESTION = WORDS.index("ann"), WORDS.index("?")


@pytest.fixture(scope="module")
def explorer():
    return positions_explorer()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_its_scores_are_the_models(explorer, scheme):
    """By the model's own weights: of a talk of one name that a "?" ends, at each of its lengths."""
    scores = stored(explorer, frame(explorer, scheme=scheme)["scores"]).double()
    model, longest = last_speaker.load(scheme).double(), scores.shape[-1]
    assert longest == (16 if scheme == "learned" else 64)
    for query in (1, 15, longest - 1):
        token_ids = torch.full((1, query + 1), ANN)
        token_ids[0, -1] = QUESTION
        with torch.no_grad():
            weights = model(token_ids, last=True)[1][0, :, 0, :-1]  # to the names
        expected = weights / weights.sum(-1, keepdim=True)
        torch.testing.assert_close(
            scores[:, query, :query].softmax(-1), expected, atol=1e-5, rtol=1e-4
        )
        assert scores[:, query, query + 1 :].eq(-torch.inf).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_its_talk_is_asked_at_each_place(explorer, scheme):
    held, model = frame(explorer, scheme=scheme), last_speaker.load(scheme).double()
    weights, shares = stored(explorer, held["weights"]), stored(explorer, held["shares"])
    token_ids = torch.tensor([[WORDS.index(word) for word in held["words"]]])
    asked = [query for query in held["queries"] if scheme != "learned" or query < 16]
    assert len(weights) == len(shares) == len(asked)
    for nth, query in enumerate(asked):
        talk = token_ids[:, : query + 1].clone()
        talk[0, -1] = QUESTION
        with torch.no_grad():
            logits, theirs = model(talk)
        torch.testing.assert_close(
            weights[nth, :, : query + 1].double(), theirs[0, :, -1], atol=1e-6, rtol=1e-5
        )
        assert not weights[nth, :, query + 1 :].any()
        torch.testing.assert_close(
            shares[nth].double(), logits[0, -1].softmax(-1), atol=1e-6, rtol=1e-5
        )
        before = [word for word in held["words"][:query] if word in NAMES]
        assert held["speakers"][nth] == before[-1]


def test_its_shares_of_right_answers_are_measured(explorer):
    held = frame(explorer, scheme="rotary")
    shares = dict(zip(held["lengths"], stored(explorer, held["accuracy"])[0].tolist(), strict=True))
    assert shares[64] == pytest.approx(
        accuracy(last_speaker.load("rotary"), new_talks(64)), abs=0.003
    )


def test_learned_positions_say_why_they_refuse(explorer):
    refusals = {scheme: frame(explorer, scheme=scheme)["refusal"] for scheme in SCHEMES}
    assert refusals.pop("learned").startswith("x has 64 positions, more than max_length=16")
    assert set(refusals.values()) == {""}
