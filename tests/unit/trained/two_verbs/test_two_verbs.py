"""Sentences with two verbs: what is drawn, and what the stored models make of it, computed anew."""

import functools
import math
import random

import numpy as np
import pytest
import torch

from attention.trained import two_verbs
from attention.trained.two_verbs import (
    LONGEST,
    RUNS,
    SIZES,
    VOCABULARY,
    TwoVerbs,
    Verb,
    divisors,
    draw_two_verbs,
    encode,
    find_verbs,
    load_course,
    measured,
    new_two_verbs,
)
from attention.trained.who_and_whom import ALONE, NOBODY, NOUNS, PARTICIPLES, VERBS
from attention.trained.who_and_whom.data import GRAMMARS

SENTENCE = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "chased", "the", "other", "cat"]


@functools.cache
def new(d_model):
    """The sentences that a width is measured on, which take seconds to draw."""
    return new_two_verbs(d_model)


def read_by_hand(clause):
    """Who and whom of a clause by the rules that a reader uses."""
    verb = next(i for i, word in enumerate(clause) if word in {*VERBS, *PARTICIPLES, *ALONE})
    if clause[verb] in ALONE:
        return verb, clause[0], NOBODY
    nouns = (*NOUNS, "<unk>")
    first = next(word for word in clause if word in nouns)
    second = next(word for word in clause[verb:] if word in nouns)
    return verb, *((second, first) if clause[verb - 1] == "was" else (first, second))


@pytest.mark.parametrize("d_model", GRAMMARS)
def test_the_answers_are_those_of_a_reader(d_model):
    rng = random.Random(1)
    counts = []
    for _ in range(2000):
        sentence = draw_two_verbs(rng, d_model=d_model)
        assert len(sentence.tokens) < LONGEST
        assert [verb.place for verb in sentence.verbs] == find_verbs(sentence.tokens)
        middle = sentence.tokens.index("and") if "and" in sentence.tokens else None
        clauses = [sentence.tokens[:middle]]
        if middle is not None:
            clauses.append(sentence.tokens[middle + 1 :])
        starts = (0, (middle or 0) + 1)
        found = [
            (start + verb, answers)
            for start, (verb, *answers) in zip(starts, map(read_by_hand, clauses), strict=False)
        ]
        drawn = zip(sentence.verbs, sentence.answers, strict=True)
        assert found == [(verb.place, list(answers)) for verb, answers in drawn]
        counts.append(len(sentence.verbs))
    assert 0.56 < counts.count(2) / len(counts) < 0.64
    words = {word for text in new(16) for word in text.tokens}
    assert words | {NOBODY} == set(VOCABULARY.tokens[1:])


def test_a_sentence_with_two_verbs_stands_in_two_rows():
    sentence = TwoVerbs(SENTENCE, [Verb(2, who=1, whom=4), Verb(8, who=7, whom=11)])
    alone = TwoVerbs(["birds", "sing", "at", "dawn"], [Verb(1, who=0, whom=None)])
    batch = encode([sentence, alone])
    assert torch.equal(batch.token_ids[0], batch.token_ids[1])
    assert batch.verb.tolist() == [2, 8, 1]
    assert VOCABULARY.decode(batch.who) == ["cat", "dog", "birds"]
    assert VOCABULARY.decode(batch.whom) == ["dog", "cat", NOBODY]


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


@pytest.mark.parametrize(("d_model", "n_heads"), SIZES)
def test_what_is_stored_is_right_as_often_as_it_says(d_model, n_heads):
    """Counted once more without torch, on 400 of the sentences, and in all by the package."""
    model, stored = two_verbs.load(d_model, n_heads), measured(d_model, n_heads)
    assert two_verbs.measure(model) == stored._asdict() | {"roles": [list(h) for h in stored.roles]}
    weights = numpy_weights(model)
    asked = [
        (sentence.tokens, verb.place, answers)
        for sentence in new(d_model)[:400]
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
    assert stored[8, 1].two_verbs < 0.2
    assert stored[8, 8].two_verbs < 0.7, "heads of one number each are worse"
    who, whom = stored[8, 2].roles
    assert who.who > 0.9 and whom.whom > 0.9
    assert max(stored[8, 2].without) < 0.1


def test_with_one_query_every_row_of_weights_is_the_same():
    model = two_verbs.load()
    batch = encode(new(8)[:50])
    blind = two_verbs.with_one_query(model, batch)
    weights = blind(batch.token_ids, batch.verb).weights
    torch.testing.assert_close(weights, weights[:, :, :1].expand_as(weights))
    assert not torch.equal(model.attention.w_q.weight, blind.attention.w_q.weight)


def test_a_size_without_weights_is_refused():
    with pytest.raises(ValueError, match="n_heads=8 does not divide d_model=12"):
        two_verbs.load(12, 8)
    with pytest.raises(ValueError, match=r"d_model=16 and n_heads=2; .* can be \(8, 1\), \(8, 2\)"):
        two_verbs.load(16, 2)
    with pytest.raises(ValueError, match="d_model=7 has no recipe; it can be 8 or 12"):
        two_verbs.train(7, 1, 0)


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


@pytest.mark.slow
def test_a_run_comes_to_what_is_stored():
    right, largest = divisors.train_run(RUNS["divided"], seed=1)
    stored = load_course("divided")
    assert right[-1] == pytest.approx(stored.right[1, -1].item(), abs=0.05)
    assert largest[0] == pytest.approx(stored.largest[1, 0].item(), abs=0.01)


def test_the_scores_of_a_run_have_the_variance_that_the_run_says():
    """Near d_key with first weights of variance 1/d_model: so says chapter 4's assumption."""
    batch = encode(new(8)[:100])
    rows = torch.arange(len(batch.verb))
    captured = {}
    for name in ("divided", "divided, torch's first weights"):
        model = divisors.begin(RUNS[name], seed=0)
        x = model.embed(batch.token_ids)
        q = model.attention.w_q(x)[rows, batch.verb, :64]
        k = model.attention.w_k(x)[..., :64]
        real = batch.token_ids != VOCABULARY.pad_id
        captured[name] = torch.einsum("bd,bkd->bk", q, k)[real].var().item()
    assert 40 < captured["divided"] < 250
    assert captured["divided, torch's first weights"] < captured["divided"] / 4
