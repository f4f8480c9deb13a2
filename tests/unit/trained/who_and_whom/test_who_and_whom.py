"""The book's model: its sentences, its stored weights, and a training from scratch."""

import functools
import itertools
import math
import random

import numpy as np
import pytest
import torch

from attention import SENTENCES, Vocabulary, tokenize
from attention.trained import who_and_whom
from attention.trained.who_and_whom import (
    ALONE,
    LONGEST,
    NOBODY,
    NOUNS,
    PARTICIPLES,
    RUNS,
    SIZES,
    VARIANTS,
    VERBS,
    VOCABULARY,
    Sentence,
    Verb,
    accuracy,
    checkpoints,
    divisors,
    draw_sentence,
    draw_sentences,
    encode,
    find_verbs,
    load_course,
    measured,
    new_sentences,
    roles,
    train,
    with_one_query,
    without_head,
)

EVERYTHING = draw_sentences(3000, passive=True, places=True, seed=1)


@functools.cache
def new(d_model):
    """The sentences that a width is measured on, which take seconds to draw, and their batch."""
    sentences = new_sentences(d_model)
    return sentences, encode(sentences)


def read_by_hand(clause):
    """Who and whom of a clause by the rules that a reader uses."""
    verb = next(i for i, word in enumerate(clause) if word in {*VERBS, *PARTICIPLES, *ALONE})
    if clause[verb] in ALONE:
        return verb, clause[0], NOBODY
    nouns = (*NOUNS, "<unk>")
    first = next(word for word in clause if word in nouns)
    second = next(word for word in clause[verb:] if word in nouns)
    return verb, *((second, first) if clause[verb - 1] == "was" else (first, second))


def test_the_answers_are_those_of_a_reader():
    for sentence in EVERYTHING:
        tokens = sentence.tokens
        assert [verb.place for verb in sentence.verbs] == find_verbs(tokens)
        middle = tokens.index("and") if "and" in tokens else len(tokens)
        clauses = [(0, tokens[:middle]), (middle + 1, tokens[middle + 1 :])]
        found = [(start, read_by_hand(clause)) for start, clause in clauses if clause]
        drawn = zip(sentence.verbs, sentence.answers, strict=True)
        assert [(start + verb, (who, whom)) for start, (verb, who, whom) in found] == [
            (verb.place, answers) for verb, answers in drawn
        ]
        assert len(tokens) < LONGEST
        for article, word in itertools.pairwise(tokens):
            if article in ("a", "an"):
                assert (article == "an") == (word[0] in "aeiou")
    counts = [len(sentence.verbs) for sentence in EVERYTHING]
    assert 0.56 < counts.count(2) / len(counts) < 0.64 and counts.count(1) > 1000
    assert find_verbs(["the", "cat"]) == []


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
    rows = [
        (sentence.tokens, verb.place, answers)
        for sentence in EVERYTHING[:50]
        for verb, answers in zip(sentence.verbs, sentence.answers, strict=True)
    ]
    assert len(batch.verb) == len(rows) > 50
    for i, (tokens, place, answers) in enumerate(rows):
        assert VOCABULARY.decode([batch.who[i].item(), batch.whom[i].item()]) == list(answers)
        assert VOCABULARY.decode(batch.token_ids[i])[: len(tokens)] == tokens
        assert batch.verb[i] == place


def test_a_sentence_with_two_verbs_stands_in_two_rows():
    tokens = tokenize("the cat saw the dog and the dog chased the other cat")
    sentence = Sentence(tokens, [Verb(2, who=1, whom=4), Verb(8, who=7, whom=11)])
    alone = Sentence(tokenize("birds sing at dawn"), [Verb(1, who=0, whom=None)])
    batch = encode([sentence, alone])
    assert torch.equal(batch.token_ids[0], batch.token_ids[1])
    assert batch.verb.tolist() == [2, 8, 1]
    assert VOCABULARY.decode(batch.who) == ["cat", "dog", "birds"]
    assert VOCABULARY.decode(batch.whom) == ["dog", "cat", NOBODY]


def meow(rng):
    """A sentence of another language: the verb comes last."""
    who, whom = rng.choice(["mao", "gou"]), rng.choice(["yu", "niao"])
    return Sentence([who, whom, rng.choice(["chi", "kan"])], [Verb(2, who=0, whom=1)])


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
    assert find_verbs(new[0].tokens, ["chi", "kan"]) == [2] and find_verbs(new[0].tokens) == []


def test_a_vocabulary_without_the_answers_is_refused():
    new = [meow(random.Random(0)), Sentence(["mao", "chi"], [Verb(1, 0, None)])]
    with pytest.raises(ValueError, match=r"the vocabulary lacks '\w+', 'mao', .* every noun"):
        encode(new)
    with pytest.raises(ValueError, match=r"lacks 'nobody', .* and 'nobody' where whom is None"):
        encode(new, Vocabulary(sentence.tokens for sentence in new))


def numpy_weights(model):
    return {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}


def in_numpy(weights, n_heads, tokens, verb, query=None):
    """Who and whom at one verb, without torch; every word asks with `query` where it is given."""
    ids = [VOCABULARY.ids.get(token, 1) for token in tokens]
    table = weights["embedding.table.weight"]
    d_model = table.shape[1]
    place, column = np.arange(len(ids))[:, None], np.arange(d_model)[None, :]
    angle = place / 10000 ** ((column - column % 2) / d_model)
    x = table[ids] * math.sqrt(d_model) + np.where(column % 2, np.cos(angle), np.sin(angle))

    def project(x, name):
        return x @ weights[f"attention.{name}.weight"].T + weights[f"attention.{name}.bias"]

    q = project(x[verb], "w_q") if query is None else query
    k, v = project(x, "w_k"), project(x, "w_v")
    d_key = d_model // n_heads
    parts = []
    for head in range(n_heads):
        columns = slice(head * d_key, (head + 1) * d_key)
        scores = k[:, columns] @ q[columns] / math.sqrt(d_key)
        a = np.exp(scores - scores.max())
        parts.append(a @ v[:, columns] / a.sum())
    row = project(np.concatenate(parts), "w_o")
    answers = [
        int((row @ weights[f"{to}.weight"].T + weights[f"{to}.bias"]).argmax())
        for to in ("to_who", "to_whom")
    ]
    return tuple(VOCABULARY.decode(answers)), project(x[verb], "w_q")


@pytest.mark.one_in(4)
@pytest.mark.slow  # 4,000 sentences each
@pytest.mark.parametrize(("d_model", "n_heads"), SIZES)
def test_what_is_stored_is_right_as_often_as_it_says(d_model, n_heads):
    """Counted once more without torch, on 400 of the sentences, and in all by the package."""
    model, stored = who_and_whom.load(d_model, n_heads), measured(d_model, n_heads)
    anew = who_and_whom.measure(model)
    for name, value in stored._asdict().items():
        assert torch.tensor(anew[name]).allclose(torch.tensor(value), atol=0.002), name
    weights = numpy_weights(model)
    asked = [
        (sentence.tokens, verb.place, answers)
        for sentence in new(d_model)[0][:400]
        if len(sentence.verbs) == 2
        for verb, answers in zip(sentence.verbs, sentence.answers, strict=True)
    ]
    found = [in_numpy(weights, n_heads, tokens, verb) for tokens, verb, _ in asked]
    right = np.mean(
        [given == answers for (given, _), (*_, answers) in zip(found, asked, strict=True)]
    )
    assert right == pytest.approx(stored.two_verbs, abs=0.06)
    mean = np.mean([query for _, query in found], axis=0)
    blind = [in_numpy(weights, n_heads, tokens, verb, mean)[0] for tokens, verb, _ in asked]
    left = np.mean([given == answers for given, (*_, answers) in zip(blind, asked, strict=True)])
    assert left == pytest.approx(stored.one_query, abs=0.06)


def test_the_query_carries_what_keys_and_values_do_not():
    stored = {size: measured(*size) for size in SIZES}
    assert stored[8, 2].two_verbs > 0.99 and stored[8, 2].one_query < 0.3
    assert max(each.one_query for each in stored.values()) < 0.3
    assert max(stored[8, 2].without) < 0.1
    assert max(stored[size].two_verbs for size in stored if size[1] == 1) < 0.25
    assert stored[8, 4].two_verbs > 0.95 and stored[12, 2].two_verbs > 0.95
    assert stored[8, 8].two_verbs < 0.7, "heads of one number each are worse"


def test_with_one_query_every_row_of_weights_is_the_same():
    model, batch = who_and_whom.load(), encode(EVERYTHING[:50])
    blind = with_one_query(model, batch)
    weights = blind(batch.token_ids, batch.verb).weights
    torch.testing.assert_close(weights, weights[:, :, :1].expand_as(weights))
    assert not torch.equal(model.attention.w_q.weight, blind.attention.w_q.weight)


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
    "no-positions": 0.1332,
    "one-matrix-for-q-and-k": 0.675,
    "feed-forward": 0.645,
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_costs_what_the_book_says(variant):
    model = who_and_whom.load(8, 1 if variant == "feed-forward" else 2, variant)
    share = accuracy(model, new(8)[1]).both
    assert share == pytest.approx(VARIANT_SHARES[variant], abs=0.002)


def test_a_variant_is_what_its_name_says():
    x = torch.randn(1, 3, 8)
    assert torch.equal(who_and_whom.load(8, 2, "no-positions").positional_encoding(x), x)
    shared = who_and_whom.load(8, 2, "one-matrix-for-q-and-k").attention
    assert shared.w_q is shared.w_k


def test_another_attention_can_stand_in():
    model, batch = who_and_whom.load(8, 2), new(8)[1]
    own = accuracy(model, batch, lambda x, mask: model.attention(x, mask=mask)[0])
    assert own == accuracy(model, batch)
    assert accuracy(model, batch, lambda x, mask: torch.zeros_like(x)).both < 0.05


def test_a_head_switched_off_takes_one_answer_with_it():
    model, batch = who_and_whom.load(8, 2), new(8)[1]
    who_off, whom_off = (accuracy(without_head(model, head), batch) for head in (0, 1))
    assert who_off.who < 0.2 and who_off.whom > 0.9
    assert whom_off.whom < 0.2 and whom_off.who > 0.9
    assert accuracy(model, batch).both > 0.995, "the model itself is left as it was"


def test_the_two_heads_of_the_book_have_a_role_each():
    who, whom = roles(who_and_whom.load(8, 2), new(8)[0])
    assert min(who.who, whom.whom) >= 0.9
    assert max(who.whom, whom.who) <= 0.1


def test_the_running_example_is_answered():
    model = who_and_whom.load(8, 2)
    sentences = [tokenize(text) for text in SENTENCES]
    verb = torch.tensor([find_verbs(tokens)[0] for tokens in sentences])
    answer = model(VOCABULARY.encode_batch(sentences), verb)
    assert VOCABULARY.decode(answer.who.argmax(-1)) == ["cat", "dog", "birds"]
    assert VOCABULARY.decode(answer.whom.argmax(-1)) == ["cat", "ball", NOBODY]


def test_what_is_not_stored_is_refused():
    with pytest.raises(ValueError, match=r"no weights are stored for d_model=12 and n_heads=6; "):
        who_and_whom.load(12, 6)
    with pytest.raises(ValueError, match="n_heads=3 does not divide d_model=8"):
        who_and_whom.load(8, 3)
    with pytest.raises(ValueError, match=r"the variant 'nothing' .* it can be no-positions, one-"):
        who_and_whom.load(8, 2, "nothing")
    with pytest.raises(ValueError, match="d_model=7 has no recipe; it can be 8 or 12 or 16"):
        train(7, 1, seed=0)
    assert (8, 2) in SIZES


@pytest.mark.parametrize("seed", checkpoints.SEEDS)
@pytest.mark.parametrize("step", checkpoints.STEPS)
def test_a_checkpoint_is_as_good_as_the_book_says(seed, step):
    model, right, heads = checkpoints.load_checkpoint(seed, step)
    sentences, batch = new(8)
    assert accuracy(model, batch) == pytest.approx(right, abs=0.002)
    assert torch.tensor(roles(model, sentences)).allclose(torch.tensor(heads), atol=0.002)


def test_the_way_ends_at_the_book_s_model():
    seed, step = checkpoints.SEEDS[0], checkpoints.STEPS[-1]
    last, stored_model = checkpoints.load_checkpoint(seed, step).model, who_and_whom.load(8, 2)
    for name, tensor in stored_model.state_dict().items():
        assert torch.equal(last.state_dict()[name], tensor), name


def test_the_way_has_its_loss():
    for seed in checkpoints.SEEDS:
        losses = checkpoints.load_losses(seed)
        assert losses.shape == (checkpoints.STEPS[-1] // checkpoints.EVERY,)
        assert abs(losses[0] - 2 * math.log(len(VOCABULARY))) < 0.2 and losses[-1] < losses[0] / 4
    with pytest.raises(ValueError, match="no weights are stored for seed=1 and step=50; seed can"):
        checkpoints.load_checkpoint(1, 50)


def test_training_can_be_watched():
    seen = []
    train(8, 2, seed=0, steps=3, watch=lambda step, loss, model: seen.append((step, loss)))
    assert [step for step, _ in seen] == [0, 1, 2]
    assert seen[0][1] == pytest.approx(2 * math.log(len(VOCABULARY)), abs=0.3)


# ---------------------------------------------------------------------------------- the divisor


def test_every_run_was_measured_on_its_way():
    for name, run in RUNS.items():
        course = load_course(name)
        assert course.steps[0] == 0 and course.steps[-1] == run.recipe.steps
        assert course.right.shape == course.largest.shape == (3, len(course.steps))
        assert course.right[:, 0].max() < 0.01, "nothing is known before the first step"
    with pytest.raises(ValueError, match="no run is stored as 'halved'; it can be 'divided'"):
        load_course("halved")


def test_undivided_scores_decide_before_anything_is_learned():
    divided, undivided = load_course("divided"), load_course("undivided")
    assert divided.largest[:, 0].max() < 0.4 and undivided.largest[:, 0].min() > 0.8
    assert divided.right[:, -1].min() > undivided.right[:, -1].max()


def test_a_divisor_that_is_too_large_costs_steps_and_one_that_is_too_small_the_task():
    undivided, by_square = load_course("undivided"), load_course("divided by d_key²")
    by_root, by_d_key = load_course("divided"), load_course("divided by d_key")
    assert by_d_key.right[:, 3].min() > by_root.right[:, 3].min() > undivided.right.max()
    assert by_square.right[:, 2].max() < 0.3 and by_square.right[:, -1].min() > 0.95


@pytest.mark.slow
def test_a_run_comes_to_what_is_stored():
    right, largest = divisors.train_run(RUNS["divided"], seed=1)
    stored = load_course("divided")
    assert right[-1] == pytest.approx(stored.right[1, -1].item(), abs=0.05)
    assert largest[0] == pytest.approx(stored.largest[1, 0].item(), abs=0.01)


def test_the_scores_of_a_run_have_the_variance_that_the_run_says():
    """Near d_key with first weights of variance 1/d_model: so says chapter 4's assumption."""
    batch = encode(new(8)[0][:100])
    rows = torch.arange(len(batch.verb))
    captured = {}
    for name in (
        "divided",
        "undivided",
        "divided by d_key",
        "divided, torch's first weights",
    ):
        model = divisors.begin(RUNS[name], seed=0)
        x = model.embed(batch.token_ids)
        q = model.attention.w_q(x)[rows, batch.verb, :64]
        k = model.attention.w_k(x)[..., :64]
        real = batch.token_ids != VOCABULARY.pad_id
        captured[name] = torch.einsum("bd,bkd->bk", q, k)[real].var().item()
    assert 40 < captured["divided"] < 250
    assert captured["divided by d_key"] == pytest.approx(captured["divided"] / 8**2, rel=1e-4)
    assert captured["undivided"] == pytest.approx(captured["divided"] * 8**2, rel=1e-4)
    assert captured["divided, torch's first weights"] < captured["divided"] / 4
