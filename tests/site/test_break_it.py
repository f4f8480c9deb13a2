"""The broken attention: what the page computes of any mistakes without torch is what torch does."""

import itertools
import random

import numpy as np
import pytest
import torch

from attention.explore.break_it import COUNT, MISTAKES, count_right, shown
from attention.trained.who_and_whom import VOCABULARY, encode, load, new_sentences
from tests.site.in_page import load_module, numbers_of, text_of, view_of

CLOSE = 1e-5
SENTENCES = 20  # for each combination of the mistakes
COMBINATIONS = list(itertools.product((False, True), repeat=len(MISTAKES)))
UNKNOWN = "zebra"

# Of many sentences, each with mistakes: the weights, the answers as ids, and their shares.
PLAYED = """
([state, tasks]) => {
  const model = modelOf(state);
  const numbers = [];
  const idOf = token => Math.max(state.vocabulary.indexOf(token), token === "<pad>" ? 0 : 1);
  for (const [tokens, at] of tasks) {
    const made = view.default.compute({tokens, ids: tokens.map(idOf)}, at, model, {stored: {}});
    numbers.push(...made.weights.data, ...made.answers.map(idOf), ...made.shares.data);
  }
  return asText(numbers);
}
"""

# At how many verbs both answers are right, combination by combination.
COUNTED = """
([state, sentences, settings]) => {
  const model = modelOf(state);
  const idOf = token => Math.max(state.vocabulary.indexOf(token), 0);
  return asText(settings.map(at => {
    let right = 0;
    for (const [tokens, wanted] of sentences) {
      const ids = tokens.map(idOf);
      const {answers} = view.default.compute({tokens, ids}, at, model, {stored: {}});
      wanted.forEach(([who, whom], i) => {
        right += answers[2 * i] === who && answers[2 * i + 1] === whom;
      });
    }
    return right;
  }));
}
"""

# One line each, after which the page still shows weights and answers.
BROKEN = {
    "no wrong split": ("split = wrongSplit ? viewAlone : splitHeads", "split = splitHeads"),
    "a wrong split always": ("split = wrongSplit ? viewAlone", "split = true ? viewAlone"),
    "no wrong axis": ("all = wrongAxis", "all = false"),
    "the axis turned once": (
        "turned(maskedSoftmax(turned(scores)))",
        "maskedSoftmax(turned(scores))",
    ),
    "scaled in any case": ("noScale ? scaledScores(q, k, 1)", "noScale ? scaledScores(q, k)"),
    "scaled twice": ("scaledScores(q, k, 1)", "scaledScores(q, k, 4)"),
    "the mask in time in any case": ("maskTooLate ? undefined : may", "may"),
    "the mask late in any case": ("maskTooLate ? undefined : may", "undefined"),
    "divided after the late mask": (
        "const heads = weightedSum(weights, v);",
        "weights.data.forEach((w, i) => { const r = i - i % keys; "
        "weights.data[i] = w / (sum(weights.data.subarray(r, r + keys)) || 1); });\n"
        "  const heads = weightedSum(weights, v);",
    ),
    "no mask at all": ("% keys) ? weight : 0", "% keys) ? weight : weight"),
    "merged rightly in any case": ("merged = noTranspose ?", "merged = false ?"),
    "merged wrongly in any case": ("merged = noTranspose ?", "merged = true ?"),
    "one mistake for another": (
        '["wrong_split", "wrong_axis", "no_scale"',
        '["wrong_axis", "wrong_split", "no_scale"',
    ),
    "who for whom": ('QUESTIONS = ["who", "whom"]', 'QUESTIONS = ["whom", "who"]'),
}


def setting(on):
    return {name: "on" if each else "off" for name, each in zip(MISTAKES, on, strict=True)}


@pytest.fixture(scope="module")
def tasks():
    """Each combination with sentences of one verb or two; some of unknown words, most padded."""
    rng, drawn = random.Random(0), []
    sentences = iter(new_sentences(count=SENTENCES * len(COMBINATIONS)))
    for _, on in itertools.product(range(SENTENCES), COMBINATIONS):
        sentence = next(sentences)
        tokens = sentence.tokens + [VOCABULARY.pad] * rng.randint(0, 4)
        if rng.random() < 0.2:
            tokens[sentence.verbs[0].who] = UNKNOWN
        drawn.append((tokens, on))
    return drawn


@pytest.fixture(scope="module")
def model():
    return load(8, 2).requires_grad_(False).double()


def torchs(tasks, model):
    numbers = []
    for tokens, on in tasks:
        # The page has its own words for these: a single unknown word is answered as it stands.
        held = shown(
            [VOCABULARY.unk if token == UNKNOWN else token for token in tokens],
            model,
            **dict(zip(MISTAKES, on, strict=True)),
        )
        ids = torch.tensor([VOCABULARY.ids[word] for word in held["answers"]])
        numbers += [held["weights"].flatten(), ids, held["shares"].flatten()]
    return torch.cat([each.double() for each in numbers]).numpy()


def state_of():
    view = view_of("break_it")
    return {
        "weights": text_of(view.weights),
        "model": view.models["trained"],
        "vocabulary": view.reads["vocabulary"],
    }


def played(page, tasks):
    named = [(tokens, setting(on)) for tokens, on in tasks]
    return numbers_of(page, PLAYED, [state_of(), named])


def test_all_combinations_agree_with_torch(module_page, tasks, model):
    assert {on for _, on in tasks} == set(COMBINATIONS)
    load_module(module_page, "break_it")
    found = played(module_page, tasks)
    np.testing.assert_allclose(found, torchs(tasks, model), rtol=0, atol=CLOSE)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, tasks, model, mistake):
    load_module(module_page, "break_it", BROKEN[mistake])
    few = tasks[: 2 * len(COMBINATIONS)]
    assert not np.abs(played(module_page, few) - torchs(few, model)).max() < 100 * CLOSE


def test_prices_counted_in_the_page_are_those_of_torch(module_page):
    """The stored prices come from torch; here the page answers the same 300 sentences itself."""
    sentences = new_sentences(count=COUNT)
    longest = encode(sentences).token_ids.shape[1]
    padded = [
        (one.tokens + [VOCABULARY.pad] * (longest - len(one.tokens)), one.answers)
        for one in sentences
    ]
    load_module(module_page, "break_it")
    settings = [setting(on) for on in COMBINATIONS]
    found = numbers_of(module_page, COUNTED, [state_of(), padded, settings])
    right, of = count_right()
    assert of == sum(len(one.verbs) for one in sentences)
    assert found.tolist() == [right[on] for on in COMBINATIONS]


@pytest.mark.quick
def test_prices_are_told_to_who_has_marked_every_mistake(visit, site):
    right, _ = count_right()
    none = right[COMBINATIONS[0]]
    lost = [none - right[tuple(each == one for each in MISTAKES)] for one in MISTAKES]
    due = [0 if each < none / 10 else 2 if each > 0.9 * none else 1 for each in lost]
    with visit(f"{site}/06-weighted-sums-and-merging.html") as v:
        widget = v.page.locator("#picture-break-it")
        widget.evaluate("widget => widget.scrollIntoView()")
        groups = widget.locator("[role=group]:has(> [data-act^=mark])")
        for nth in range(len(MISTAKES)):
            assert widget.locator("[data-name=lost]").count() == 0
            groups.nth(nth).get_by_role("button").nth(1).click()
            assert ("✓" in groups.nth(nth).inner_text()) == (due[nth] == 1)
        assert f"{due.count(1)} of 5 marks are right." in widget.inner_text()
        shown = widget.locator("[data-name=lost] .value").all_text_contents()
        assert [int(each) for each in shown[:5]] == lost
        v.assert_no_trouble()
