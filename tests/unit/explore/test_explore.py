"""Explorers outside the book: own sentences, own sizes, own models, and what they refuse."""

import inspect

import pytest
import torch

import attention.explore
from attention.example import running_example
from attention.explore import (
    attention_graph_explorer,
    induction_explorer,
    layer_explorer,
    splitting_explorer,
    training_explorer,
    who_and_whom_explorer,
)
from attention.masks import padding_mask
from attention.text import Vocabulary
from attention.trained import who_and_whom
from attention.trained.who_and_whom import VOCABULARY, Sentence, Verb, train
from tests.unit.explore.frames import frame, options

EXPLORERS = [getattr(attention.explore, name) for name in attention.explore.__all__]
SENTENCES = ["the old king drew a boat", "dogs sleep"]
OF_SENTENCES = [make for make in EXPLORERS if "sentences" in inspect.signature(make).parameters]


@pytest.fixture(autouse=True)
def _caller_keeps_its_random_numbers():
    before = torch.random.get_rng_state()
    yield
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("make", OF_SENTENCES)
def test_takes_own_sentences_and_sizes(make):
    """Two of the widths and, where there is such a slider, two numbers of heads."""
    sizes = {"d_models": (8, 12), "n_heads": (4, 1)}
    named = {name: sizes[name] for name in sizes if name in inspect.signature(make).parameters}
    explorer = make(SENTENCES, **named)
    assert options(explorer, "d_model") == ["8", "12"]
    assert explorer.view.frames and len(explorer.view.numbers) % 4 == 0
    assert not any("error" in frame for frame in explorer.view.frames.values())
    assert len(explorer.view.weights) % 2 == 0
    assert "image/png" in explorer._repr_mimebundle_()[0]


def test_who_and_whom_takes_a_sentence():
    explorer = who_and_whom_explorer("The queen hid a coin.")
    held = frame(explorer, d_model="8", n_heads="2")
    assert held["tokens"] == ["the", "queen", "hid", "a", "coin", "."] and held["verb"] == 2
    best = [held[question].argmax().item() for question in ("who", "whom")]
    assert VOCABULARY.decode(best) == ["queen", "coin"]
    assert "near" in held["unmet"] and "taken" in held["unmet"]
    assert frame(explorer, d_model="16", n_heads="4")["unmet"] == []
    weights = held["weights"][:, held["verb"]]
    assert weights.sum(-1).tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("make", [who_and_whom_explorer, training_explorer, layer_explorer])
def test_a_sentence_without_a_verb_is_refused(make):
    message = (
        "sentence has no verb that the model knows: 'the old queen'; it knows chased, .*: write"
    )
    with pytest.raises(ValueError, match=message):
        make("the old queen")


def test_who_and_whom_takes_a_model_of_another_language():
    def draw(rng):
        who, whom = rng.choice(["mao", "gou"]), rng.choice(["yu", "niao"])
        return Sentence([who, whom, rng.choice(["chi", "kan"])], [Verb(2, who=0, whom=1)])

    vocabulary = Vocabulary([["mao", "gou", "yu", "niao", "chi", "kan"]])
    model = train(8, 2, seed=0, steps=150, draw=draw, vocabulary=vocabulary)
    explorer = who_and_whom_explorer("gou yu kan", model=model, draw=draw)
    assert options(explorer, "d_model") == ["8"] and options(explorer, "n_heads") == ["2"]
    held = frame(explorer, d_model="8", n_heads="2")
    best = [held[question].argmax().item() for question in ("who", "whom")]
    assert vocabulary.decode(best) == ["gou", "yu"] and held["verb"] == 2
    assert sorted(held["verbs"]) == ["chi", "kan"] and held["accuracy"] == 1.0
    assert held["vocabulary"] == explorer.view.reads["vocabulary"] == list(vocabulary.tokens)
    assert list(explorer.view.models) == ["8,2"]
    with pytest.raises(ValueError, match=r"no verb that the model knows: 'the cat .* it knows "):
        who_and_whom_explorer(model=model, draw=draw)


def test_the_sentences_to_try_are_hidden_from_another_model_alone():
    book = who_and_whom_explorer()
    own = who_and_whom_explorer(model=who_and_whom.load(8, 2))
    assert own.view.reads["examples"] == [] and book.view.reads["examples"] is None
    assert frame(own, d_model="8", n_heads="2")["accuracy"] > 0.99


@pytest.mark.parametrize(
    ("sequence", "query", "words"),
    [
        ("the cat", 0, "text holds ' ', which is no token; the tokens are a to z and 0 to 5"),
        ("a" * 33, 0, "text must have 1 to 32 symbols, got 33"),
        ("", 0, "text must have 1 to 32 symbols, got 0"),
        ("abc", 3, "query=3 must be a position of the sequence, 0 to 2; 'abc' has 3 tokens"),
    ],
)
def test_what_is_no_sequence_is_refused(sequence, query, words):
    with pytest.raises(ValueError, match=words):
        induction_explorer(sequence, query)


def test_a_control_with_one_option_is_not_shown():
    sliders, _ = who_and_whom_explorer(d_models=[8]).children
    assert [slider.description for slider in sliders.children] == ["n_heads"]


def test_a_frame_holds_what_the_module_computes():
    explorer = attention_graph_explorer(SENTENCES)
    held = frame(explorer, sentence="dogs sleep", mask="padding", d_model="12", n_heads="4")

    example = running_example(12, 4, SENTENCES)
    _, weights = example.attention(example.x, mask=padding_mask(example.token_ids, 0))
    assert held["tokens"] == ["dogs", "sleep", *["<pad>"] * 4]
    torch.testing.assert_close(held["weights"].float(), weights[1])


def test_a_forbidden_pair_holds_the_modules_message():
    explorer = splitting_explorer()
    for label in options(explorer, "sentence"):
        held = frame(explorer, sentence=label, d_model="12", n_heads="8")
        assert held == {
            "error": "n_heads=8 does not divide d_model=12; it can be 1, 2, 3, 4, 6 or 12"
        }


def test_a_size_that_was_never_trained_says_so():
    explorer = splitting_explorer(d_models=(12,), n_heads=(2, 6))
    held = frame(explorer, sentence=options(explorer, "sentence")[0], d_model="12", n_heads="6")
    assert held["error"].startswith("no weights are stored for d_model=12 and n_heads=6; ")


def test_sizes_without_an_allowed_pair_are_refused():
    with pytest.raises(ValueError, match=r"no count of n_heads=\(3,\) divides .* d_models=\(4,\)"):
        splitting_explorer(d_models=(4,), n_heads=(3,))
