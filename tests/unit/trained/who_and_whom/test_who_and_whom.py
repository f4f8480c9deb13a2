"""The book's model: its sentences, its stored weights, and a training from scratch."""

import functools
import itertools
import math
import random

import pytest
import torch

from attention import SENTENCES, Vocabulary, split_heads, tokenize
from attention.trained import who_and_whom
from attention.trained.who_and_whom import (
    ALONE,
    LONGEST,
    NOBODY,
    NOUNS,
    PARTICIPLES,
    SIZES,
    VARIANTS,
    VERBS,
    VOCABULARY,
    WEIGHTS,
    Sentence,
    accuracy,
    checkpoints,
    draw_sentence,
    draw_sentences,
    encode,
    find_verb,
    measured,
    new_sentences,
    roles,
    train,
    without_head,
)

EVERYTHING = draw_sentences(3000, passive=True, places=True, seed=1)


@functools.cache
def new(d_model):
    """The sentences that a width is measured on, which take seconds to draw, and their batch."""
    sentences = new_sentences(d_model)
    return sentences, encode(sentences)


def read_by_hand(tokens):
    """Who and whom by the rules that a reader uses, without the grammar's own places."""
    verb = next(i for i, token in enumerate(tokens) if token in {*VERBS, *PARTICIPLES, *ALONE})
    before = [token for token in tokens[:verb] if token in (*NOUNS, "<unk>")]
    after = [token for token in tokens[verb:] if token in (*NOUNS, "<unk>")]
    if tokens[verb] in ALONE:
        return verb, (tokens[0], NOBODY)
    first, second = before[0], after[0]
    return verb, (second, first) if tokens[verb - 1] == "was" else (first, second)


def test_the_answers_are_those_of_a_reader():
    for sentence in EVERYTHING:
        assert (sentence.verb, sentence.answers) == read_by_hand(sentence.tokens)
        assert find_verb(sentence.tokens) == sentence.verb
        assert len(sentence.tokens) < LONGEST
        for article, word in itertools.pairwise(sentence.tokens):
            if article in ("a", "an"):
                assert (article == "an") == (word[0] in "aeiou")
    assert find_verb(["the", "cat"]) is None


def test_the_grammar_draws_what_it_is_asked_for():
    active = draw_sentences(500, passive=False, places=False, seed=1)
    assert not any({"was", "near"} & set(sentence.tokens) for sentence in active)
    words = {word for sentence in EVERYTHING for word in sentence.tokens}
    assert words | {NOBODY} == set(VOCABULARY.tokens[1:])
    assert not set(PARTICIPLES) & {word for s in active for word in s.tokens}
    assert 50 <= len(VOCABULARY) <= 80
    again = random.Random(1)
    assert [draw_sentence(again, passive=True, places=True) for _ in range(9)] == EVERYTHING[:9]


def test_the_running_example_is_in_the_vocabulary():
    assert all(word in VOCABULARY for text in SENTENCES for word in tokenize(text))


def test_a_batch_holds_the_answers():
    batch = encode(EVERYTHING[:50])
    for i, sentence in enumerate(EVERYTHING[:50]):
        answers = VOCABULARY.decode([batch.who[i].item(), batch.whom[i].item()])
        assert answers == list(sentence.answers)
        assert VOCABULARY.decode(batch.token_ids[i])[: len(sentence.tokens)] == sentence.tokens


def meow(rng):
    """A sentence of another language: the verb comes last."""
    who, whom = rng.choice(["mao", "gou"]), rng.choice(["yu", "niao"])
    return Sentence([who, whom, rng.choice(["chi", "kan"])], verb=2, who=0, whom=1)


def test_a_model_can_have_another_language():
    new = new_sentences(draw=meow)
    assert len(new) == 4000 and new == new_sentences(draw=meow)
    vocabulary = Vocabulary(sentence.tokens for sentence in new)
    model = train(8, 2, seed=0, steps=300, draw=meow, vocabulary=vocabulary)
    assert model.vocabulary is vocabulary and model.to_who.out_features == len(vocabulary) == 8
    batch = encode(new, vocabulary)
    assert vocabulary.decode(batch.who[:3]) == [sentence.tokens[0] for sentence in new[:3]]
    assert accuracy(model, batch).both > 0.95
    assert accuracy(without_head(model, 0), batch) != accuracy(model, batch)
    assert all(0 < share < 1 for head in roles(model, new) for share in head)
    assert find_verb(new[0].tokens, ["chi", "kan"]) == 2 and find_verb(new[0].tokens) is None


def test_a_vocabulary_without_the_answers_is_refused():
    new = [meow(random.Random(0)), Sentence(["mao", "chi"], 1, 0, None)]
    with pytest.raises(ValueError, match=r"the vocabulary lacks '\w+', 'mao', .* every noun"):
        encode(new)
    with pytest.raises(ValueError, match=r"lacks 'nobody', .* and 'nobody' where whom is None"):
        encode(new, Vocabulary(sentence.tokens for sentence in new))


@pytest.mark.slow  # 4,000 sentences each
@pytest.mark.parametrize(("d_model", "n_heads"), SIZES)
def test_the_stored_weights_do_what_training_measured(d_model, n_heads):
    model, (sentences, batch) = who_and_whom.load(d_model, n_heads), new(d_model)
    stored = measured(d_model, n_heads)
    assert accuracy(model, batch).both == pytest.approx(stored.accuracy, abs=0.002)
    for head, was in zip(roles(model, sentences), stored.roles, strict=True):
        assert head == pytest.approx(was, abs=0.002)


def test_one_head_falls_short_and_enough_heads_do_not():
    """One head returns one average: the two answers are mixed."""
    share = {pair: measured(*pair).accuracy for pair in SIZES}
    assert max(share[pair] for pair in share if pair[1] == 1) < 0.75
    assert min(share[8, n] for n in (2, 4, 8)) >= 0.995
    assert min(share[12, 3], share[12, 4], share[16, 4]) >= 0.995
    assert share[16, 8] >= 0.98


def test_numbers_of_heads_change_no_count():
    for d_model in (8, 12, 16):
        counts = {
            sum(x.numel() for x in who_and_whom.load(d_model, n).parameters())
            for d, n in SIZES
            if d == d_model
        }
        assert len(counts) == 1


# Both answers right, of the variant that is stored; by no more than a machine's rounding else.
VARIANT_SHARES = {
    "no-positions": 0.2125,
    "one-matrix-for-q-and-k": 0.9938,
    "divided-by-nothing": 0.9722,
    "divided-by-d_key": 1.0,
    "divided-by-root-d_model": 1.0,
    "feed-forward": 0.9592,
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_costs_what_the_book_says(variant):
    model = who_and_whom.load(8, 1 if variant == "feed-forward" else 2, variant)
    share = accuracy(model, new(8)[1]).both
    assert share == pytest.approx(VARIANT_SHARES[variant], abs=0.002)


def test_a_variant_is_what_its_name_says():
    batch = encode(EVERYTHING[:50])
    x = torch.randn(1, 3, 8)
    assert torch.equal(who_and_whom.load(8, 2, "no-positions").positional_encoding(x), x)
    shared = who_and_whom.load(8, 2, "one-matrix-for-q-and-k").attention
    assert shared.w_q is shared.w_k
    for variant, divisor in [("nothing", 1.0), ("d_key", 4.0), ("root-d_model", 8**0.5)]:
        model = who_and_whom.load(8, 2, f"divided-by-{variant}")
        attention = model.attention
        weights = model(batch.token_ids, batch.verb).weights
        x = model.embed(batch.token_ids)
        # Without the hook that does it, from the layers' numbers.
        q, k = (
            split_heads(torch.nn.functional.linear(x, layer.weight, layer.bias), 2)
            for layer in (attention.w_q, attention.w_k)
        )
        scores = q @ k.transpose(-2, -1) / divisor
        scores = scores.masked_fill((batch.token_ids == 0)[:, None, None], -torch.inf)
        torch.testing.assert_close(weights, scores.softmax(-1))


def test_another_attention_can_stand_in():
    model, batch = who_and_whom.load(8, 2), new(8)[1]
    own = accuracy(model, batch, lambda x, mask: model.attention(x, mask=mask)[0])
    assert own == accuracy(model, batch)
    assert accuracy(model, batch, lambda x, mask: torch.zeros_like(x)).both < 0.05


def test_a_head_switched_off_takes_one_answer_with_it():
    model, batch = who_and_whom.load(8, 2), new(8)[1]
    who_off, whom_off = (accuracy(without_head(model, head), batch) for head in (0, 1))
    assert who_off.who < 0.15 and who_off.whom > 0.8
    assert whom_off.whom < 0.15 and whom_off.who > 0.8
    assert accuracy(model, batch).both > 0.995, "the model itself is left as it was"
    cut = who_and_whom.load(8, 2)  # the same by its weights: the head's columns of W_O are zero
    with torch.no_grad():
        cut.attention.w_o.weight[:, :4] = 0
    gated = without_head(model, 0)(batch.token_ids, batch.verb)
    torch.testing.assert_close(gated, cut(batch.token_ids, batch.verb))


def test_the_two_heads_of_the_book_have_a_role_each():
    first, second = roles(who_and_whom.load(8, 2), new(8)[0])
    who, whom = sorted((first, second), key=lambda head: head.whom)
    assert min(who.who, whom.whom) >= 0.9
    assert max(who.whom, whom.who) <= 0.1


def test_the_running_example_is_answered():
    model = who_and_whom.load(8, 2)
    sentences = [tokenize(text) for text in SENTENCES]
    verb = torch.tensor([find_verb(tokens) for tokens in sentences])
    answer = model(VOCABULARY.encode_batch(sentences), verb)
    assert VOCABULARY.decode(answer.who.argmax(-1)) == ["cat", "dog", "birds"]
    assert VOCABULARY.decode(answer.whom.argmax(-1)) == ["cat", "ball", NOBODY]


def test_what_is_not_stored_is_refused():
    with pytest.raises(ValueError, match=r"no weights are stored for d_model=12 and n_heads=6; "):
        who_and_whom.load(12, 6)
    with pytest.raises(ValueError, match="n_heads=3 does not divide d_model=8"):
        who_and_whom.load(8, 3)
    with pytest.raises(
        ValueError, match=r"the variant 'nothing' .* there it can be no-positions, one-"
    ):
        who_and_whom.load(8, 2, "nothing")
    with pytest.raises(ValueError, match="d_model=7 has no recipe; it can be 8 or 12 or 16"):
        train(7, 1, seed=0)
    files = WEIGHTS.parents[1].rglob("*.safetensors")  # of all tasks
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert (8, 2) in SIZES


@pytest.mark.parametrize("seed", checkpoints.SEEDS)
@pytest.mark.parametrize("step", checkpoints.STEPS)
def test_a_checkpoint_is_as_good_as_the_book_says(seed, step):
    model, right, heads = checkpoints.load_checkpoint(seed, step)
    sentences, batch = new(8)
    assert accuracy(model, batch) == pytest.approx(right, abs=0.002)
    assert torch.tensor(roles(model, sentences)).allclose(torch.tensor(heads), atol=0.002)


def test_the_way_ends_at_the_book_s_model():
    last, stored_model = checkpoints.load_checkpoint(0, 2500).model, who_and_whom.load(8, 2)
    for name, tensor in stored_model.state_dict().items():
        assert torch.equal(last.state_dict()[name], tensor), name


def test_the_way_has_its_loss():
    for seed in checkpoints.SEEDS:
        losses = checkpoints.load_losses(seed)
        assert losses.shape == (checkpoints.STEPS[-1] // checkpoints.EVERY,)
        assert abs(losses[0] - 2 * math.log(len(VOCABULARY))) < 0.2 and losses[-1] < 0.1
    with pytest.raises(ValueError, match="no weights are stored for seed=1 and step=50; seed can"):
        checkpoints.load_checkpoint(1, 50)


def test_training_can_be_watched():
    seen = []
    train(8, 2, seed=0, steps=3, watch=lambda step, loss, model: seen.append((step, loss)))
    assert [step for step, _ in seen] == [0, 1, 2]
    assert seen[0][1] == pytest.approx(2 * math.log(len(VOCABULARY)), abs=0.3)
