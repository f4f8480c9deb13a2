"""Scores of heads, heads switched off, and sentences whose words stand where they are said to."""

import random

import pytest
import torch

from attention import DecoderOnly
from attention.pretrained import load
from attention.pretrained.heads import (
    at_the_verb,
    best,
    chosen_right,
    copied,
    first_token_score,
    repeated,
    scores,
    without_heads,
)
from attention.pretrained.sentences import (
    KINDS,
    NOUNS,
    VERBS,
    Choice,
    draw,
    himself_or_herself,
    is_or_are,
)
from attention.trained.head_scores import induction_score


@pytest.fixture
def model():
    torch.manual_seed(0)
    return DecoderOnly(40_000, 16, 4, 32, n_layers=2).eval()


def test_scores_are_means_over_queries_and_texts(model):
    ids = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
    _, weights = model(ids)
    ours = scores(model, ids, first_token_score)
    for layer, of_layer in enumerate(weights):
        for head in range(4):
            some = [of_layer[b, head, q, 0].item() for b in range(2) for q in range(1, 5)]
            assert ours[layer, head].item() == pytest.approx(sum(some) / len(some), abs=1e-6)


def test_a_repeated_text_is_the_same_twice_and_induction_looks_behind_the_first(model):
    ids = repeated(seed=3, batch=2, length=7)
    assert torch.equal(ids[:, :7], ids[:, 7:]) and len(set(ids[0, :7].tolist())) == 7
    _, weights = model(ids)
    ours = induction_score(weights[0], ids)
    for head in range(4):
        some = [weights[0][b, head, 7 + i, i + 1].item() for b in range(2) for i in range(7)]
        assert ours[head].item() == pytest.approx(sum(some) / len(some), abs=1e-6)


def test_copied_counts_what_is_told_right(model):
    ids = repeated(seed=0, batch=2, length=6)
    likeliest = model(ids)[0].argmax(-1)
    right = [likeliest[b, t].item() == ids[b, t + 1].item() for b in range(2) for t in range(6, 11)]
    assert copied(model, ids) == pytest.approx(sum(right) / len(right))

    class Copier(DecoderOnly):
        """Tells the token that followed the last time."""

        def read(self, token_ids, **_):
            return torch.nn.functional.one_hot(token_ids.roll(5, 1), 40_000).float(), None

        def to_logits(self, x):
            return x

    copier = Copier(40_000, 16, 4, 32, n_layers=1)
    assert copied(copier, ids) == 1.0


def test_a_head_switched_off_writes_nothing(model):
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    off = without_heads(model, [(1, 2), (0, 3)])
    by_hand = DecoderOnly(40_000, 16, 4, 32, n_layers=2).eval()
    by_hand.load_state_dict(model.state_dict())
    with torch.no_grad():  # the columns of W_O that read it
        by_hand.layers[1].self_attention.w_o.weight[:, 8:12] = 0
        by_hand.layers[0].self_attention.w_o.weight[:, 12:16] = 0
    before = model(ids)[0]
    torch.testing.assert_close(off(ids)[0], by_hand(ids)[0])
    assert not torch.allclose(off(ids)[0], before) and torch.equal(model(ids)[0], before)


def test_the_best_come_first():
    assert best(torch.tensor([[0.1, 0.9, 0.2], [0.8, 0.3, 0.0]]), 3) == [(0, 1), (1, 0), (1, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_words_stand_where_a_sentence_says(kind):
    tokenizer = load().tokenizer
    for seed in range(20):
        one = draw(kind, tokenizer, random.Random(seed))
        text = tokenizer.decode(one.ids).removesuffix(".").split()[4:]

        def upto(place, ids=one.ids):  # the word that ends at this token
            return tokenizer.decode(ids[: place + 1]).split()[-1]

        assert upto(one.subject) == text[1] and text[1] in NOUNS
        assert upto(one.verb) == text[-3] and text[-3] in VERBS
        assert upto(one.object) == text[-1]
        nearest = {"plain": text[1], "place": text[-4], "relative": text[4]}[kind]
        assert upto(one.nearest) == nearest


@pytest.mark.slow
def test_where_a_verb_looks_is_read_from_its_row():
    smol = load()
    ours = at_the_verb(smol.model, smol.tokenizer, "relative", seed=4, count=2)
    rng, sums = random.Random(4), torch.zeros(3, 30, 9)
    for _ in range(2):
        one = draw("relative", smol.tokenizer, rng)
        _, weights = smol.model(torch.tensor([one.ids]))
        for layer, of_layer in enumerate(weights):
            row = of_layer[0, :, one.verb]
            for i, place in enumerate((one.subject, one.nearest, one.verb - 1)):
                sums[i, layer] += row[:, place] / 2
    for name, expected in zip(("subject", "nearest", "previous"), sums, strict=True):
        torch.testing.assert_close(ours[name], expected, atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="kind='passive' must be one of plain, place, relative"):
        draw("passive", smol.tokenizer, rng)


def test_choices_cross_every_noun_with_those_of_the_other_form():
    both = is_or_are()
    assert len(set(both)) == len(both) == 7 * 6 * 2
    for beginning, right, _ in both:
        noun, other = beginning.split()[1], beginning.split()[-1]
        assert (right == " are") == noun.endswith("s") != other.endswith("s")
        assert noun.removesuffix("s") != other.removesuffix("s")
    women = {"queen", "girl", "woman", "mother", "wife", "aunt", "daughter"}
    for beginning, right, wrong in himself_or_herself():
        noun, other = beginning.split()[5], beginning.split()[8]
        assert (noun in women) == (right == " herself") == (wrong == " himself")
        assert (other in women) != (noun in women)


def test_chosen_right_counts_the_likelier_of_two():
    model, tokenizer, _ = load()
    some = [
        Choice("The capital of France is", " Paris", " London"),
        Choice("The capital of France is", " London", " Paris"),
        Choice("Once upon a", " time", " France"),
    ]
    assert chosen_right(model, tokenizer, some) == pytest.approx(2 / 3)
