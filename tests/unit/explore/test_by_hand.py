"""The explorers in which a reader does the work of a head, beside loops over words and letters."""

import ast
import functools
import itertools
import math
import re
from fractions import Fraction

import nbformat
import pytest
import torch

from attention import merge_heads, padding_mask, split_heads
from attention.explore import (
    aim_heads_explorer,
    be_the_head,
    be_the_head_explorer,
    break_it_explorer,
    paint_a_mask,
    paint_a_mask_explorer,
    wire_two_heads,
    wire_two_heads_explorer,
)
from attention.explore.be_the_head import ALL_NOUNS, QUESTIONS, STORED, two_verb_sentences
from attention.explore.break_it import COUNT, MISTAKES, attend_wrongly
from attention.explore.wire_two_heads import BEFORE, LETTERS, PLACE, TOKEN, WROTE
from attention.trained.who_and_whom import VOCABULARY, encode, load, new_sentences
from tests.unit.explore.frames import frame
from tools.refresh import chapters

# -------------------------------------------------------------------------------- aim the heads


@torch.no_grad()
@pytest.mark.parametrize(
    "aims", [("as trained", "as trained"), ("ball", "as trained"), ("a", "dog")]
)
def test_an_aimed_head_brings_the_value_row_of_its_word(aims):
    held = frame(aim_heads_explorer(), head_0=aims[0], head_1=aims[1])
    model, tokens = load(8, 2).double(), ["a", "dog", "chased", "the", "red", "ball"]
    x = model.embed(VOCABULARY.encode_batch([tokens]))[0]
    rows, keys = (
        x @ part.weight.T + part.bias for part in (model.attention.w_v, model.attention.w_k)
    )
    query = x[2] @ model.attention.w_q.weight.T + model.attention.w_q.bias
    parts = []
    for head, aim in enumerate(aims):
        own = slice(4 * head, 4 * head + 4)
        if aim == "as trained":
            shares = torch.softmax(keys[:, own] @ query[own] / 2, dim=0)
            parts.append(sum(share * row for share, row in zip(shares, rows[:, own], strict=True)))
        else:
            parts.append(rows[tokens.index(aim), own])
        torch.testing.assert_close(held["returned"][head], parts[-1], rtol=0, atol=1e-5)
    output = torch.cat(parts) @ model.attention.w_o.weight.T + model.attention.w_o.bias
    for question, layer in (("who", model.to_who), ("whom", model.to_whom)):
        torch.testing.assert_close(held[question], layer(output).softmax(-1), rtol=0, atol=1e-6)
    said = [VOCABULARY.tokens[held[question].argmax()] for question in QUESTIONS]
    assert said == {"as trained": ["dog", "ball"], "ball": ["ball", "ball"]}.get(
        aims[0], ["sailor", "dog"]
    )


# ---------------------------------------------------------------------------------- be the head

ASKED = be_the_head.encode(two_verb_sentences())
COARSE = list(itertools.product((0, 3, 6), repeat=6))


def liked(tokens, verb, likes, from_the_verb):
    """The score of each word, one liking after the other."""
    noun, *likes = likes
    seats = dict(zip((-2, -1, 1, 2, 3) if from_the_verb else range(5), likes, strict=True))
    start = verb if from_the_verb else 0
    return [
        (noun if token in ALL_NOUNS else 0) + seats.get(place - start, 0)
        for place, token in enumerate(tokens)
    ]


@pytest.mark.parametrize("from_the_verb", [False, True])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_readers_head_counts_and_weighs_as_loops_do(question, from_the_verb):
    settings = [(5, 3, 6, 1, 2, 4), (2, 0, 0, 0, 3, 3), (0, 0, 2, 0, 2, 0), (3, 1, 0, 6, 0, 2)]
    for likes in (*settings, STORED[question]):
        right = of = 0
        for tokens, verbs in two_verb_sentences():
            for verb in verbs:
                scores, wanted = (
                    liked(tokens, verb.place, likes, from_the_verb),
                    getattr(verb, question),
                )
                best = [place for place, score in enumerate(scores) if score == max(scores)]
                right += wanted is not None and best == [wanted]  # several are no answer
                of += wanted is not None
        found = be_the_head.count_right(ASKED, question, likes, from_the_verb=from_the_verb)
        assert found == right
    held = frame(
        be_the_head_explorer(), question=question, from_the_verb="on" if from_the_verb else "off"
    )
    assert [*held["setting"].values()] == [str(like) for like in likes]
    assert len({*likes}) == 6, "a page that takes one for another would not be noticed"
    assert (held["right"], held["of"]) == (right, of) and of == {"who": 1000, "whom": 906}[question]
    assert held["share"].item() == pytest.approx(right / of)
    assert [held["tokens"][place] for place in held["asking"]] == ["saw", "chased"]
    for nth, verb in enumerate(held["asking"]):
        scores = torch.tensor(liked(held["tokens"], verb, likes, from_the_verb)).double()
        torch.testing.assert_close(held["weights"][nth, :, 0], scores.softmax(0), rtol=0, atol=1e-6)
        assert held["answers"][nth] == scores.argmax()


def test_what_the_page_says_of_the_settings_of_the_readers_head():
    def best(question, settings, from_the_verb):
        count = functools.partial(be_the_head.count_right, ASKED, question)
        return max(count(likes, from_the_verb=from_the_verb) for likes in settings)

    # Counted from the start none gets above one half, from the verb some get nearly all.
    assert best("who", COARSE, False) == 500 and best("whom", COARSE, False) == 144
    assert best("who", [(0, 0, 3, 0, 0, 0)], True) > 950
    assert best("whom", [(3, 0, 0, 0, 3, 3)], True) > 0.95 * 906
    # Adjectives stand where nouns may stand: for whom seats alone are not enough.
    assert best("whom", [likes for likes in COARSE if likes[0] == 0], True) == 590


# ------------------------------------------------------------------------------------- break it

COMBINATIONS = list(itertools.product((False, True), repeat=len(MISTAKES)))


def of_chapter(number, name):
    """A function as the chapter defines it."""
    [path] = [path for path in chapters() if path.name.startswith(number)]
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    nodes = [node for cell in cells for node in ast.parse(cell.source).body]
    [function] = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == name]
    space = {"torch": torch}
    exec(compile(ast.Module([function], type_ignores=[]), path.name, "exec"), space)
    return space[name]


def by_chapters(attention, x, mask, split, axis, scale, late, merge):
    """The same attention made of the chapters' functions, the mistaken and the right ones."""
    split = of_chapter("03", "view_alone") if split else split_heads
    merge = of_chapter("03", "reshape_alone") if merge else merge_heads
    softmax = of_chapter("04", "over_queries" if axis else "over_keys")
    q, k, v = (split(layer(x), 2) for layer in (attention.w_q, attention.w_k, attention.w_v))
    scores = q @ k.transpose(-2, -1) / (1 if scale else 2)
    if late and not axis:
        weights = of_chapter("05", "mask_after")(scores, mask)
    else:
        weights = softmax(scores if late else scores.masked_fill(~mask, -1e9)) * mask
    return attention.w_o(merge(weights @ v)), weights


@torch.no_grad()
def test_broken_attention_makes_the_mistakes_of_the_chapters_and_costs_what_it_says():
    assert [*MISTAKES] == ["wrong_split", "wrong_axis", "no_scale", "mask_too_late", "no_transpose"]
    explorer, model = break_it_explorer(), load(8, 2).double()
    sentences = new_sentences(count=COUNT)
    batch = encode(sentences)
    x, mask = model.embed(batch.token_ids), padding_mask(batch.token_ids, 0)
    wanted = [list(answer) for sentence in sentences for answer in sentence.answers]
    right = {}
    for on in COMBINATIONS:
        found = attend_wrongly(model.attention, x, mask, **dict(zip(MISTAKES, on, strict=True)))
        expected = by_chapters(model.attention, x, mask, *on)
        torch.testing.assert_close(tuple(found), expected, rtol=0, atol=1e-9)
        # Word by word: an answer is right that is the word at its place.
        rows = expected[0][torch.arange(len(batch.verb)), batch.verb]
        given = [
            VOCABULARY.decode(read(rows).argmax(-1).tolist())
            for read in (model.to_who, model.to_whom)
        ]
        right[on] = sum(list(a) == b for a, b in zip(zip(*given, strict=True), wanted, strict=True))
        alone = [right[COMBINATIONS[0]] - right[one] for one in right if sum(one) == 1]
        held = shown(explorer, on)
        assert (held["right"], held["of"]) == (right[on], len(wanted))
        assert held["lost"].flatten()[-1] == right[COMBINATIONS[0]] - right[on]
    for on in COMBINATIONS:
        assert shown(explorer, on)["lost"].flatten().tolist()[:-1] == alone[::-1]

    def lost(*names):
        return right[COMBINATIONS[0]] - right[tuple(name in names for name in MISTAKES)]

    # What the chapter says of pairs: those without a transpose alone undo each other.
    for pair in itertools.combinations(MISTAKES, 2):
        undone = min(map(lost, pair)) - lost(*pair)
        assert undone > 100 if pair == ("wrong_split", "no_transpose") else undone <= 1, pair
    assert right[True, False, False, False, True] == 202
    assert right[True, False, False, False, False] == 8
    assert lost("wrong_axis", "mask_too_late") == lost("wrong_axis") and lost("mask_too_late") > 100
    assert lost("no_scale") == 0 and lost("no_scale", "mask_too_late") > lost("mask_too_late")
    held = shown(explorer, COMBINATIONS[0])
    assert held["answers"] == ["cat", "dog", "dog", "cat"]
    torch.testing.assert_close(held["weights"][..., :-2].sum(-1), torch.ones(2, 2).double())
    assert held["weights"].argmax(-1).tolist() == [[1, 4], [7, 11]]


def shown(explorer, on):
    labels = {name: "on" if each else "off" for name, each in zip(MISTAKES, on, strict=True)}
    return frame(explorer, **labels)


# --------------------------------------------------------------------------------- paint a mask


def allowed(start, token_ids, query, key):
    is_word = token_ids[key] != 0
    return {
        "nothing hidden": True,
        "padding hidden": is_word,
        "padding and future hidden": is_word and key <= query,
        "only the next word": key == query + 1,
        "each word only itself": key == query,
        "everything hidden": False,
    }[start]


@torch.no_grad()
def test_a_painted_mask_weighs_by_the_formula_and_counts_one_by_one():
    explorer, model = paint_a_mask_explorer(), paint_a_mask.book_model()
    batch = paint_a_mask.two_verb_batch()
    assert len(batch.verb) == 600 and (batch.verb[::2] < batch.verb[1::2]).all()
    two_verbs = [each for each in new_sentences(count=1000) if len(each.verbs) == 2]
    longest = batch.token_ids.shape[1]
    few = type(batch)(*(part[:120] for part in batch))
    for start in paint_a_mask.STARTS:
        held = frame(explorer, start_from=start)
        ids = VOCABULARY.encode_batch([held["tokens"]])
        places = range(12)
        mask = [[float(allowed(start, ids[0], q, k)) for k in places] for q in places]
        assert held["mask"].tolist() == mask
        layers = model.attention.w_q, model.attention.w_k
        q, k = (w(model.embed(ids).double()).view(12, 2, 4).transpose(0, 1) for w in layers)
        powers = held["mask"] * (q @ k.mT / 2).exp()
        weights = (powers / powers.sum(-1, keepdim=True)).nan_to_num(0)  # 0 where nothing is seen
        torch.testing.assert_close(held["weights"], weights, rtol=0, atol=1e-5)
        right = 0
        for tokens, verbs in two_verbs[:60]:
            ids = VOCABULARY.encode_batch([tokens + ["<pad>"] * (longest - len(tokens))])
            places = range(longest)
            may = torch.tensor(
                [[bool(allowed(start, ids[0], q, k)) for k in places] for q in places]
            )
            output, _ = model.attention(model.embed(ids).double(), mask=may)
            for verb in verbs:
                logits = model.read(output, torch.tensor([verb.place]))
                whom = "nobody" if verb.whom is None else tokens[verb.whom]
                words = VOCABULARY.decode([each.argmax().item() for each in logits])
                right += words == [tokens[verb.who], whom]
        masks = paint_a_mask.starting_mask(start, batch.token_ids)
        assert paint_a_mask.count_right(model, few, masks[:120]) == right
        assert held["right"] == paint_a_mask.count_right(model, batch, masks)
        assert held["of"] == 600 and held["share"].item() == pytest.approx(held["right"] / 600)


# ------------------------------------------------------------------------------- wire two heads

FIRST = list(itertools.product((TOKEN, PLACE, BEFORE), (TOKEN, PLACE), (TOKEN, PLACE)))
SECOND = list(itertools.product((TOKEN, WROTE), (TOKEN, BEFORE, WROTE), (TOKEN, WROTE)))
BY_KEYS = (BEFORE, PLACE, TOKEN), (TOKEN, WROTE, TOKEN)
BY_QUERIES = (TOKEN, TOKEN, PLACE), (WROTE, BEFORE, TOKEN)


def looked_up(parts, query, key, copies, rows):
    """Each row copies from the rows up to it that agree best with it; equal ones share."""
    results, looks = [], []
    for i in rows:
        agree = [
            sum(share * answers.get(what, 0) for what, share in parts[query][i].items())
            for answers in parts[key][: i + 1]
        ]
        best = [j for j, each in enumerate(agree) if each == max(agree)]
        result = {}
        for j in best:
            for what, share in parts[copies][j].items():
                result[what] = result.get(what, 0) + share / len(best)
        results.append(result)
        looks.append([Fraction(j in best, len(best)) for j in range(len(parts[query]))])
    return results, looks


@functools.cache
def wired(sequence, first, second):
    """What layer 1 writes, where both layers look, and the letters that lead in the last row."""
    places = range(len(sequence))
    # What each row holds: for each part and row the share of each letter or place.
    parts = {
        TOKEN: [{letter: Fraction(1)} for letter in sequence],
        PLACE: [{place: Fraction(1)} for place in places],
        BEFORE: [{place - 1: Fraction(1)} if place else {} for place in places],
    }
    results, *looks = looked_up(parts, *first, places)
    wrote = ["+".join(sorted(map(str, row))) if len(row) < 3 else "mix" for row in results]
    if second:
        results, looks_1 = looked_up(parts | {WROTE: results}, *second, places)
        looks.append(looks_1)
    shares = {what: share for what, share in results[-1].items() if isinstance(what, str)}
    return wrote, looks, {what for what in shares if shares[what] == max(shares.values())}


def renamed(sequence):
    """With its letters named a, b, c … in turn: the rules ask only which of them are equal."""
    return "".join("abcdefg"[sequence.index(letter)] for letter in sequence)


def followed(sequence):
    return re.search(f"{sequence[-1]}(.)", sequence)[1]


def test_wired_heads_hold_what_rules_look_up_without_attention():
    token_ids = wire_two_heads.repeating_sequences(500)
    sequences = ["".join(LETTERS[i] for i in row) for row in token_ids.tolist()]
    assert len({*sequences}) == 500 and all(1 <= s.index(s[-1]) <= 5 for s in sequences)
    assert all(len(s) == 8 and len({*s}) == 7 for s in sequences)
    due = [LETTERS[i] for i in wire_two_heads.due(token_ids).tolist()]
    assert due == [followed(sequence) for sequence in sequences]
    patterns, explorer, counts = list(map(renamed, sequences)), wire_two_heads_explorer(), {}
    for first, second in itertools.product(FIRST, (None, *SECOND)):
        ends = dict(zip(("query_0", "key_0", "copies_0"), first, strict=True))
        ends |= dict(zip(("query_1", "key_1", "copies_1"), second or SECOND[0], strict=True))
        held = frame(explorer, layers=2 if second else 1, **ends)
        wrote, looks, answer = wired("".join(held["tokens"]), first, second)
        assert (held["wrote"], set(held["answer"]), held["due"]) == (wrote, answer, "x")
        for i, expected in enumerate(looks):
            expected = torch.tensor([[float(share) for share in row] for row in expected])
            torch.testing.assert_close(held[f"layer{i}"], expected.double(), rtol=0, atol=1e-6)
        assert ("layer1" in held) == (second is not None)
        right = sum(wired(each, first, second)[2] == {followed(each)} for each in patterns)
        assert (held["right"], held["of"]) == (right, 500)
        counts[first, second] = right
    # Two wirings of 144 solve it, and no other is better than a guess by the place alone, a fifth.
    two = {wiring: right for wiring, right in counts.items() if wiring[1]}
    assert len(two) == 144 and two.pop(BY_KEYS) == two.pop(BY_QUERIES) == 500
    assert max(two.values()) < 100 + 4 * math.sqrt(500 * 0.2 * 0.8)
    # One layer is right only where the answer stands before the last.
    one = {first: right for (first, second), right in counts.items() if second is None}
    looks_back = one.pop((BEFORE, PLACE, TOKEN))
    assert looks_back == sum(s[-2] == followed(s) for s in sequences) == 102
    assert set(one.values()) == {0}


def test_what_the_still_pictures_say_is_so():
    still = be_the_head_explorer().still
    [weights] = still.values.values()
    assert f"{weights[0, 1]:.2f}, to" in still.alt and f"and {weights[0, 0]:.2f} to" in still.alt
    explorer = wire_two_heads_explorer()
    held = frame(explorer, **{name: each.value for name, each in explorer.controls.items()})
    assert held["right"] == 0 and held["answer"] == ["k"]
    expected = torch.eye(8).double()
    expected[7, 2] = expected[7, 7] = 0.5
    assert held["layer0"].equal(expected) and held["layer1"].equal(expected)
