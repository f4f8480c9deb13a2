"""Relative clauses: their grammar, the stored models by kind of clause, and a training."""

import functools
import itertools
import math
import random

import pytest
import torch
from torch import nn

from attention import Encoder
from attention.embedding import sines_and_cosines
from attention.trained import relative_clauses
from attention.trained.head_scores import aligned_score
from attention.trained.relative_clauses import (
    CLAUSES,
    LAYERS,
    LONGEST,
    NO_VERB,
    VOCABULARY,
    Clauses,
    RelativeClauses,
    Verb,
    accuracy_by_kind,
    answer_keys,
    draw_clauses,
    encode_clauses,
    new_clauses,
)
from attention.trained.relative_clauses.model import D_FF
from attention.trained.who_and_whom import ADJECTIVES, NOUNS, PARTICIPLES, VERBS
from tests.unit.refusals import refusals

RNG = random.Random(1)
DRAWN = [draw_clauses(RNG) for _ in range(2000)]


def read_by_hand(tokens):
    """The verbs of a sentence, read from left to right by the rules of English.

    Without the places that the grammar noted while it drew.
    """
    rest, verbs = list(enumerate(tokens)), []

    def take(*words):
        place, word = rest.pop(0)
        assert word in words, (word, tokens)
        return place

    def noun():
        take("the", "a", "an")
        if rest[0][1] in ADJECTIVES:
            rest.pop(0)
        return take(*NOUNS, "<unk>")

    def verb():
        """Its place, and whether it is passive."""
        if rest[0][1] != "was":
            return take(*VERBS), False
        take("was")
        place = take(*VERBS.values())
        take("by")
        return place, True

    def noun_with_clause():
        outer = noun()
        if rest and rest[0][1] == "that":
            take("that")
            if rest[0][1] in ("the", "a", "an"):
                inner = noun()
                verbs.append(Verb(take(*VERBS), inner, outer, "object"))
            else:
                place, passive = verb()
                inner = noun()
                if passive:
                    verbs.append(Verb(place, inner, outer, "passive"))
                else:
                    verbs.append(Verb(place, outer, inner, "subject"))
        return outer

    first = noun_with_clause()
    place, passive = verb()
    second = noun_with_clause()
    assert not rest
    who, whom = (second, first) if passive else (first, second)
    return sorted([*verbs, Verb(place, who, whom, "main")])


def test_the_answers_are_those_of_a_reader():
    for sentence in DRAWN:
        assert sentence.verbs == read_by_hand(sentence.tokens)
        for article, word in itertools.pairwise(sentence.tokens):
            if article in ("a", "an"):
                assert (article == "an") == (word[0] in "aeiou")


def test_the_grammar_draws_all_that_it_promises():
    kinds = [verb.kind for sentence in DRAWN for verb in sentence.verbs]
    assert kinds.count("main") == len(DRAWN)
    for kind in CLAUSES:
        assert kinds.count(kind) / len(DRAWN) == pytest.approx(1 / 3, abs=0.05)
    assert {len(sentence.verbs) for sentence in DRAWN} == {1, 2, 3}
    mains = [verb for sentence in DRAWN for verb in sentence.verbs if verb.kind == "main"]
    assert sum(verb.who > verb.whom for verb in mains) / len(mains) == pytest.approx(0.5, abs=0.05)
    assert max(len(sentence.tokens) for sentence in DRAWN) < LONGEST
    assert {word for sentence in DRAWN for word in sentence.tokens} == set(VOCABULARY.tokens[1:])
    assert set(PARTICIPLES) <= set(VOCABULARY.tokens)
    again = random.Random(1)
    assert [draw_clauses(again) for _ in range(9)] == DRAWN[:9]


def test_a_batch_holds_the_answers_at_the_verbs_and_nowhere_else():
    batch = encode_clauses(DRAWN[:50])
    who_keys, whom_keys = answer_keys(DRAWN[:50])
    for i, sentence in enumerate(DRAWN[:50]):
        tokens = sentence.tokens
        assert VOCABULARY.decode(batch.token_ids[i])[: len(tokens)] == tokens
        for name, keys in (("who", who_keys), ("whom", whom_keys)):
            answers = getattr(batch, name)[i]
            places = [place for place in range(len(answers)) if answers[place] != NO_VERB]
            assert places == [verb.place for verb in sentence.verbs]
            wanted = [getattr(verb, name) for verb in sentence.verbs]
            assert VOCABULARY.decode(answers[places]) == [tokens[place] for place in wanted]
            assert keys[i].nonzero().tolist() == [
                list(pair) for pair in zip(places, wanted, strict=True)
            ]


def test_the_model_is_torchs_encoder_between_embedding_and_read_out():
    model = RelativeClauses(2).double()
    layer = nn.TransformerEncoderLayer(
        32, 2, D_FF[2], dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    norm = nn.LayerNorm(32, dtype=torch.float64)
    torchs = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
    for parameter in torchs.parameters():  # its layers are copies of one, and its norms are 1 and 0
        nn.init.normal_(parameter, std=0.2)
    model.encoder.load_state_dict(Encoder.from_torch(torchs).state_dict())
    ids = encode_clauses(DRAWN[:20]).token_ids
    x = model.embedding.table.weight[ids] * math.sqrt(32) + sines_and_cosines(ids.shape[1], 32)
    rows = torchs(x, src_key_padding_mask=ids == 0)
    answer, words = model(ids), ids != 0
    for readout, logits in ((model.to_who, answer.who), (model.to_whom, answer.whom)):
        expected = rows @ readout.weight.T + readout.bias
        torch.testing.assert_close(logits[words], expected[words], rtol=1e-5, atol=1e-5)
        gradients, wanted = (
            torch.autograd.grad(
                y[words].square().mean(), model.embedding.table.weight, retain_graph=True
            )
            for y in (logits, expected)
        )
        assert gradients[0][1:].abs().max() > 0
        # The row of the padding stays zero: the module's own gives it no gradient.
        torch.testing.assert_close(gradients[0][1:], wanted[0][1:], rtol=1e-5, atol=1e-5)
    assert len(answer.weights) == 2
    assert model(ids, need_weights=False).weights is None


def test_the_two_models_have_about_as_many_parameters():
    one, two = (sum(x.numel() for x in RelativeClauses(n).parameters()) for n in (1, 2))
    assert (one, two) == (23_362, 23_326)


@functools.cache
def new():
    """The sentences that the models are measured on, which take seconds to draw."""
    return new_clauses()


@pytest.mark.parametrize("n_layers", LAYERS)
def test_the_stored_weights_do_what_training_measured(n_layers):
    right = accuracy_by_kind(relative_clauses.load(n_layers), new())
    assert right == pytest.approx(relative_clauses.measured(n_layers), abs=0.002)


def test_one_layer_falls_short_in_every_kind_and_two_do_not():
    assert max(relative_clauses.measured(1).values()) < 0.92
    assert relative_clauses.measured(1)["all"] < 0.87
    assert min(relative_clauses.measured(2).values()) > 0.99


def test_accuracy_by_kind_counts_verbs_of_which_both_answers_are_right():
    """Of a model that is always right, but for whom in object clauses and one who."""
    sentences = DRAWN[:40]
    batch = encode_clauses(sentences)
    who, whom = (
        nn.functional.one_hot(ids.clamp(min=0), len(VOCABULARY)).float()
        for ids in (batch.who, batch.whom)
    )
    for i, sentence in enumerate(sentences):
        for verb in sentence.verbs:
            if verb.kind == "object":
                whom[i, verb.place] = 0
    main = next(verb for verb in sentences[0].verbs if verb.kind == "main")
    who[0, main.place] = 0
    model = RelativeClauses(1)
    model.forward = lambda ids, need_weights: type(relative_clauses.load()(ids))(who, whom, None)
    n_verbs = sum(len(sentence.verbs) for sentence in sentences)
    n_object = sum(verb.kind == "object" for sentence in sentences for verb in sentence.verbs)
    assert accuracy_by_kind(model, sentences) == pytest.approx(
        {
            "main": 39 / 40,
            "subject": 1,
            "passive": 1,
            "object": 0,
            "all": (n_verbs - n_object - 1) / n_verbs,
        }
    )


def test_the_answers_come_from_order_and_not_from_the_words():
    """The same words in the four orders, which say four different things."""
    expected = {
        "the dog that the cat chased saw the bird": [("cat", "dog"), ("dog", "bird")],
        "the dog that chased the cat saw the bird": [("dog", "cat"), ("dog", "bird")],
        "the dog that was chased by the cat was seen by the bird": [
            ("cat", "dog"),
            ("bird", "dog"),
        ],
        "the bird saw the dog that the cat chased": [("bird", "dog"), ("cat", "dog")],
    }
    ids = VOCABULARY.encode_batch(expected)
    answer = relative_clauses.load(2)(ids)
    for i, (text, answers) in enumerate(expected.items()):
        places = [verb.place for verb in read_by_hand(text.split())]
        who, whom = (VOCABULARY.decode(x[i, places].argmax(-1)) for x in answer[:2])
        assert list(zip(who, whom, strict=True)) == answers


@torch.no_grad()
def test_the_verbs_look_at_their_nouns():
    sentences = new()[:300]
    model, ids = relative_clauses.load(2), encode_clauses(sentences).token_ids
    weights = model(ids).weights
    who, whom = answer_keys(sentences)
    assert max(aligned_score(layer, who).max() for layer in weights) > 0.5
    assert max(aligned_score(layer, whom).max() for layer in weights) > 0.5


N_LAYERS = "n_layers must be 1 or 2, got 3"
test_bad_input = refusals(
    [
        (lambda: relative_clauses.load(3), N_LAYERS),
        (lambda: RelativeClauses(3), N_LAYERS),
        (lambda: relative_clauses.measured(3), N_LAYERS),
        (lambda: encode_clauses([Clauses([], [])]), "sentences hold no token at all"),
    ]
)
