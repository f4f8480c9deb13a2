"""The reader's head: what the page computes of any setting without torch is what torch computes."""

import random

import numpy as np
import pytest
import torch

from attention.explore.be_the_head import (
    LIKED,
    MOST,
    QUESTIONS,
    answers,
    count_right,
    encode,
    is_noun,
    scores,
    two_verb_sentences,
)
from attention.trained.who_and_whom import find_verbs, new_sentences
from tests.site.in_page import load_module, numbers_of, text_of, view_of

CLOSE = 1e-5
SENTENCES = 300

# Of many sentences, each with its setting: the weights, the answers and the count.
PLAYED = """
([state, tasks]) => {
  const model = modelOf(state);
  const numbers = [];
  for (const [tokens, at] of tasks) {
    const ids = tokens.map(token => Math.max(state.vocabulary.indexOf(token), 1));
    const made = view.default.compute({tokens, ids}, at, model, {});
    numbers.push(...made.weights.data, ...made.answers, made.right, made.of);
  }
  return asText(numbers);
}
"""

# One line each, after which the page still shows weights and a count.
BROKEN = {
    "seats of the verb from the start": (
        "fromTheVerb ? FROM_VERB.indexOf(place - verb)",
        "false ? 0",
    ),
    "seats the wrong way round": ("indexOf(place - verb)", "indexOf(verb - place)"),
    "one after another": ("FROM_VERB = [-2, -1, 1, 2, 3]", "FROM_VERB = [-2, -1, 0, 1, 2]"),
    "no liking for nouns": ("return isNoun * likes.noun + ", "return "),
    "who for whom": ("[1 + question]: wanted", "[2 - question]: wanted"),
    "the first of equals": ("scores.includes(largest, place + 1) ? -1 : place", "place"),
    "weights that do not sum to 1": ("weights.data[row * keys + key] /= sum", "0"),
    "an unknown word that is no noun": ("ids[i] === UNK_ID", "false"),
}


@pytest.fixture(scope="module")
def tasks():
    """Sentences with one verb or two, each with a setting of its own; some of unknown words."""
    rng, drawn = random.Random(0), []
    for nth, sentence in enumerate(new_sentences(count=SENTENCES)):
        tokens = list(sentence.tokens)
        if rng.random() < 0.2:
            tokens[sentence.verbs[0].who] = "zebra"
        most = rng.choice((1, MOST))  # of small numbers many are equal
        at = {name: str(rng.randint(0, most)) for name in LIKED}
        at |= {"question": QUESTIONS[nth % 2], "from_the_verb": rng.choice(("off", "on"))}
        drawn.append((tokens, at))
    return drawn


@pytest.fixture(scope="module")
def asked():
    return encode(two_verb_sentences())


def torchs(tasks, asked):
    numbers = []
    for tokens, at in tasks:
        likes, from_the_verb = [int(at[name]) for name in LIKED], at["from_the_verb"] == "on"
        nouns = is_noun(["<unk>" if token == "zebra" else token for token in tokens])
        verbs = torch.tensor(find_verbs(tokens))
        made = scores(nouns, verbs, likes, from_the_verb=from_the_verb)
        right = count_right(asked, at["question"], likes, from_the_verb=from_the_verb)
        of = (getattr(asked, at["question"]) >= 0).sum()
        counts = torch.tensor([right, of])
        numbers += [made.softmax(-1).flatten(), answers(made), counts]
    return torch.cat([each.double() for each in numbers]).numpy()


def played(page, tasks):
    view = view_of("be_the_head")
    state = {
        "weights": text_of(view.weights),
        "model": view.models["head"],
        "vocabulary": view.reads["vocabulary"],
    }
    return numbers_of(page, PLAYED, [state, tasks])


def test_hundreds_of_settings_agree_with_torch(module_page, tasks, asked):
    load_module(module_page, "be_the_head")
    found = played(module_page, tasks)
    np.testing.assert_allclose(found, torchs(tasks, asked), rtol=0, atol=CLOSE)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, tasks, asked, mistake):
    load_module(module_page, "be_the_head", BROKEN[mistake])
    few = tasks[:40]
    assert not np.abs(played(module_page, few) - torchs(few, asked)).max() < 100 * CLOSE


# The widget by itself, with a model as a notebook has one: says what the view shows at a setting.
SHOWN = """
async ([code, traits, numbers, weights, settings]) => {
  const url = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
  const {default: widget} = await import(url);
  const bytes = text => {
    const found = Uint8Array.from(atob(text), c => c.charCodeAt(0));
    return new DataView(found.buffer);
  };
  const state = {...traits, numbers: bytes(numbers), weights: bytes(weights)};
  const listeners = {};
  const model = {
    get: name => state[name],
    on: (name, listener) => { listeners[name] = listener; },
    off: () => {},
  };
  const el = document.body.appendChild(document.createElement("div"));
  const end = widget.render({model, el});
  const said = settings.map(at => {
    Object.assign(state, at);
    listeners[`change:${Object.keys(at)[0]}`]();
    const error = el.querySelector("[data-picture] .error");
    return error?.textContent ?? el.querySelector("[role=status]").textContent;
  });
  end();
  el.remove();
  return said;
}
"""


def shown(page, settings, code=None):
    view = view_of("be_the_head")
    places = {control["name"]: getattr(view, control["name"]) for control in view.controls}
    traits = {name: getattr(view, name) for name in ("title", "controls", "frames", "models")}
    state = [
        code or str(view._esm),
        {**traits, **places, "reads": view.reads},
        text_of(view.numbers),
        text_of(view.weights),
        settings,
    ]
    return page.evaluate(SHOWN, state)


def test_the_controls_enter_the_computation(module_page):
    best = {"from_the_verb": 1, "before_1": 3}
    whom = {"question": 1, "noun": 3, "before_1": 0, "after_2": 3, "after_3": 3}
    said = shown(module_page, [{"noun": 2}, {"before_1": 3}, best, whom, {"from_the_verb": 0}])
    assert said == [
        "who? · the head likes nouns (2) · positions counted from the start"
        " · right at 0 of 1,000 verbs, 0.0 %",
        "who? · the head likes nouns (2), word 2 (3) · positions counted from the start"
        " · right at 251 of 1,000 verbs, 25.1 %",
        "who? · the head likes nouns (2), 1 before (3) · positions counted from the verb that asks"
        " · right at 1,000 of 1,000 verbs, 100.0 %",
        "whom? · the head likes nouns (3), 2 after (3), 3 after (3)"
        " · positions counted from the verb that asks · right at 906 of 906 verbs, 100.0 %",
        "whom? · the head likes nouns (3), word 4 (3), word 5 (3)"
        " · positions counted from the start · right at 144 of 906 verbs, 15.9 %",
    ]


@pytest.mark.parametrize("mistake", ["one after another", "no liking for nouns", "who for whom"])
def test_a_page_that_computes_otherwise_refuses(module_page, mistake):
    right, wrong = BROKEN[mistake]
    code = str(view_of("be_the_head")._esm)
    assert code.count(right) == 1
    for said in shown(
        module_page, [{"from_the_verb": 1}, {"before_1": 3}], code.replace(right, wrong)
    ):
        assert "differently than torch does" in said
