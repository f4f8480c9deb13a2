"""The reader's own sentence: what the page computes without torch is what torch computes."""

import inspect
import json
import random

import numpy as np
import pytest
import torch

import attention.explore
from attention.example import SENTENCES as SENTENCES_OF_THE_BOOK
from attention.masks import padding_mask
from attention.text import tokenize
from attention.trained import who_and_whom
from attention.trained.who_and_whom import (
    LONGEST,
    SIZES,
    VOCABULARY,
    draw_sentences,
    find_verbs,
    without_head,
)
from tests.site.conftest import BOOK
from tests.site.in_page import load_module, numbers_of, text_of, view_of
from tools.widget_state import WIDGET_STATE

CLOSE = 1e-5
SENTENCES = 250  # for each of the stored models

# The weights, who and whom of many sentences, one after another, as the bytes of doubles.
ANSWERS = """
([state, sentences]) => {
  const model = modelOf(state);
  const numbers = [];
  for (const tokens of sentences) {
    const known = token => Math.max(state.vocabulary.indexOf(token), 1);
    const ids = tokens.map(token => token === "<pad>" ? 0 : known(token));
    const shared = {stored: {verbs: state.verbs}, memory: {}};
    const made = view.default.compute({tokens, ids}, {}, model, shared);
    numbers.push(...made.weights.data, ...made.who.data, ...made.whom.data);
  }
  return asText(numbers);
}
"""

# How far the page's frames are from the stored ones, setting by setting.
DIFFERENCES = """
state => {
  const buffer = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;
  const numbers = new Float32Array(buffer(state.numbers));
  const weights = view.halves(new Uint16Array(buffer(state.weights)));
  const read = tokens => tokens.map(token => Math.max(state.vocabulary.indexOf(token), 0));
  return state.settings.map(([place, at]) => {
    const stored = view.unpacked(state.frames[place], numbers);
    if (stored.error) return null;
    const named = view.default.model ?? (at => `${at.d_model},${at.n_heads ?? 2}`);
    const model = view.unpacked(state.models[named(at)], weights);
    const tokens = stored.keys ?? stored.tokens;
    const made = view.default.compute({tokens, ids: read(tokens)}, at, model,
                                      {stored, read, memory: {}});
    const off = view.difference(made, stored);
    return Number.isFinite(off) ? off : -1;
  });
}
"""

# One line each, and what a reader of the page would take for an answer all the same.
BROKEN = {
    "a lost bias": ("return bias ? filled", "return false ? filled"),
    "heads merged without their transpose": (
        "x.data[(Math.floor(c / dKey) * seq + s) * dKey + (c % dKey)]",
        "x.data[s * heads * dKey + c]",
    ),
    "a mask of the wrong polarity": ("tokens[key] !== PAD", "tokens[key] === PAD"),
    "no mask": ("return (_query, key) => tokens[key] !== PAD", "return () => true"),
    "a scale of 1/d_key": ("divisor = Math.sqrt(q.shape[2])", "divisor = q.shape[2]"),
    "positions from 1": ("const angle = position /", "const angle = (position + 1) /"),
    "keys for queries": ('[project(x, "q"), ', '[project(memory, "k"), '),
}


@pytest.fixture(scope="module")
def landing():
    return view_of("who_and_whom")


@pytest.fixture(scope="module")
def drawn():
    """Sentences of every kind, some with words that nobody knows, some padded."""
    rng = random.Random(0)
    sentences = [s.tokens for s in draw_sentences(SENTENCES, passive=True, places=True, seed=3)]
    for tokens in sentences:
        if rng.random() < 0.2:
            tokens[rng.randrange(len(tokens))] = "zebra"
        if rng.random() < 0.2:
            tokens += ["<pad>"] * rng.randint(1, LONGEST - len(tokens))
    return sentences


def torchs(d_model, n_heads, sentences):
    """What torch makes of the same sentences: weights, then the probabilities of who and whom."""
    model = who_and_whom.load(d_model, n_heads).requires_grad_(False).double()
    numbers = []
    for tokens in sentences:
        token_ids = VOCABULARY.encode_batch([tokens])
        mask = padding_mask(token_ids, VOCABULARY.pad_id)
        output, weights = model.attention(model.embed(token_ids).double(), mask=mask)
        who, whom = model.read(output, torch.tensor((find_verbs(tokens) or [0])[:1]))
        numbers += [weights.flatten(), who.softmax(-1).flatten(), whom.softmax(-1).flatten()]
    return torch.cat(numbers).numpy()


def computed(page, view, d_model, n_heads, sentences):
    state = {
        "weights": text_of(view.weights),
        "model": view.models[f"{d_model},{n_heads}"],
        "vocabulary": view.reads["vocabulary"],
        "verbs": view.frames["0,1"]["verbs"],
    }
    return numbers_of(page, ANSWERS, [state, sentences])


@pytest.mark.parametrize(("d_model", "n_heads"), SIZES)
def test_thousands_of_sentences_agree_with_torch(module_page, landing, drawn, d_model, n_heads):
    load_module(module_page, "who_and_whom")
    found = computed(module_page, landing, d_model, n_heads, drawn)
    np.testing.assert_allclose(found, torchs(d_model, n_heads, drawn), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, landing, drawn, mistake):
    load_module(module_page, "who_and_whom", BROKEN[mistake])
    few = drawn[:40]
    found = computed(module_page, landing, 8, 2, few)
    assert not np.abs(found - torchs(8, 2, few)).max() < 100 * CLOSE


# Q, K and V of some sentences without a bias, and what is said of Q's first number.
UNBIASED = """
([state, sentences]) => {
  const model = modelOf(state);
  const numbers = [];
  for (const tokens of sentences) {
    const ids = tokens.map(token => state.vocabulary.indexOf(token));
    const made = view.default.compute({tokens, ids}, {bias: "off"}, model, {});
    const said = view.default.describe({name: "q", r: 0, c: 0, value: made.q.data[0]}, made);
    if (!said.endsWith("No bias.") || "b_q" in made) throw new Error(said);
    numbers.push(...made.q.data, ...made.k.data, ...made.v.data);
    numbers.push(made.parameters, made.head_parameters);
  }
  return asText(numbers);
}
"""


def unbiased(page, d_model, n_heads):
    view = view_of("projection")
    state = {
        "weights": text_of(view.weights),
        "model": view.models[f"{d_model},{n_heads}"],
        "vocabulary": view.reads["vocabulary"],
    }
    return numbers_of(page, UNBIASED, [state, [tokenize(text) for text in SENTENCES_OF_THE_BOOK]])


def torchs_unbiased(d_model, n_heads):
    model = who_and_whom.load(d_model, n_heads).requires_grad_(False).double()
    layers = [model.attention.w_q, model.attention.w_k, model.attention.w_v]
    numbers = []
    for text in SENTENCES_OF_THE_BOOK:
        x = model.embed(VOCABULARY.encode_batch([tokenize(text)])).double()
        numbers += [(x @ layer.weight.T).flatten() for layer in layers]
        weights = 3 * d_model * d_model
        numbers.append(torch.tensor([weights, weights / n_heads]))
    return torch.cat(numbers).numpy()


@pytest.mark.parametrize(("d_model", "n_heads"), SIZES)
def test_projections_without_a_bias_are_those_of_torch(module_page, d_model, n_heads):
    """No frame is stored of them."""
    load_module(module_page, "projection")
    found = unbiased(module_page, d_model, n_heads)
    np.testing.assert_allclose(found, torchs_unbiased(d_model, n_heads), rtol=0, atol=CLOSE)


def test_a_bias_that_stays_is_caught(module_page):
    load_module(module_page, "projection", (", bias && b)", ", b)"))
    assert not np.abs(unbiased(module_page, 8, 2) - torchs_unbiased(8, 2)).max() < 100 * CLOSE


READS_NOTHING = [
    name
    for name in attention.explore.__all__
    if "reads=None" in inspect.getsource(getattr(attention.explore, name))
]
COMPUTED = [name for name in attention.explore.__all__ if name not in READS_NOTHING]


@pytest.mark.parametrize("name", READS_NOTHING)
def test_where_nothing_can_be_written_the_page_computes_nothing(module_page, name):
    load_module(module_page, name.removesuffix("_explorer"))
    assert module_page.evaluate("() => view.default.compute === undefined")


@pytest.mark.parametrize("name", COMPUTED)
def test_every_stored_frame_is_what_the_page_computes(module_page, name):
    view = view_of(name.removesuffix("_explorer"))
    load_module(module_page, name.removesuffix("_explorer"))
    chosen = [control for control in view.controls if control["frame"]]
    # The first option of each control that only the view reads, but where a frame says which.
    fixed = {c["name"]: c["options"][0] for c in view.controls if not c["frame"]}
    settings = []
    for place, frame in view.frames.items():
        at = zip(chosen, map(int, place.split(",")), strict=True)
        chosen_at = {c["name"]: c["options"][i] for c, i in at}
        settings.append([place, fixed | frame.get("setting", {}) | chosen_at])
    state = {
        "numbers": text_of(view.numbers),
        "weights": text_of(view.weights),
        "vocabulary": view.reads["vocabulary"],
        "frames": view.frames,
        "models": view.models,
        "settings": settings,
    }
    differences = module_page.evaluate(DIFFERENCES, state)
    refused = [place for (place, _), off in zip(settings, differences, strict=True) if off is None]
    assert len(refused) == sum("error" in frame for frame in view.frames.values())
    found = [off for off in differences if off is not None]
    assert found and min(found) >= 0 and max(found) < CLOSE * 10, max(found)


# ------------------------------------------------------------------------------------- on the page

OWN = [
    "the teacher bit a flower",
    "A young nurse drew the old lamp.",
    "an unknown thing followed the queen",
    "dogs run at noon",
    "the boat hid the other boat",
]
TWO_VERBS = [
    "the fox bit the wolf and the wolf bit the fox",
    "a child hid the big drum and the queen found the child",
    "birds sing at dawn and a dog chased the red ball",
    "The old teacher drew a boat and dogs run at noon.",
    "an unknown thing followed the queen and the queen saw a lamp",
]
CHAPTERS = ("index", "02-projecting-to-q-k-v", "07-the-whole-module")


def own_field(v):
    return v.page.locator(".explorer-view .own input").first


def write(v, text):
    field = own_field(v)
    field.fill(text)
    v.page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    return v.page.locator(".explorer-view").first


def torch_answers(text, model=None, nth=0):
    tokens = tokenize(text)
    batch = VOCABULARY.encode_batch([tokens])
    verb = torch.tensor([find_verbs(tokens)[nth]])
    answer = (model or who_and_whom.load(8, 2))(batch, verb)
    return VOCABULARY.decode([answer.who.argmax().item(), answer.whom.argmax().item()])


def shown_answers(widget):
    return [
        widget.locator(f"[data-question={question}]").get_attribute("data-answer")
        for question in ("who", "whom")
    ]


@pytest.mark.quick
def test_sentences_typed_without_a_network(visit, site):
    with visit(f"{site}/index.html") as v:
        v.mount_all()
        v.page.context.set_offline(True)
        for text in OWN:
            widget = write(v, text)
            assert shown_answers(widget) == torch_answers(text), text
        v.assert_no_trouble()


@pytest.mark.parametrize(
    ("stem", "shows"),
    [
        ("index", "[data-act^='ask']"),
        ("02-projecting-to-q-k-v", "[data-act^='ask']"),
        ("06-weighted-sums-and-merging", "[data-name='lost']"),
    ],
)
def test_both_verbs_of_a_typed_sentence_are_answered_without_a_network(visit, site, stem, shows):
    with visit(f"{site}/{stem}.html") as v:
        v.mount_all()
        widget = v.page.locator(f".explorer-view:has({shows})").first
        widget.scroll_into_view_if_needed()
        v.page.context.set_offline(True)
        for text in TWO_VERBS:
            widget.locator(".own input").fill(text)
            for nth, verb in enumerate(find_verbs(tokenize(text))):
                for button in widget.locator(f"[data-act='ask {verb}']").all():
                    button.click()
                seen = [
                    widget.locator(f"[data-question={question}]")
                    .and_(widget.locator(f"[data-verb='{verb}'], :not([data-verb])"))
                    .get_attribute("data-answer")
                    for question in ("who", "whom")
                ]
                assert seen == torch_answers(text, nth=nth), (text, verb)
        v.assert_no_trouble()


def test_a_head_switched_off_takes_its_answer_with_it(visit, site):
    with visit(f"{site}/index.html") as v:
        v.mount_all()
        text = "the red ball chased a dog"
        widget = write(v, text)
        assert shown_answers(widget) == ["ball", "dog"]
        for head in (0, 1):
            switch = widget.locator(f"[data-act='head {head}']")
            switch.focus()
            v.page.keyboard.press("Space")
            assert switch.get_attribute("aria-checked") == "false"
            model = without_head(who_and_whom.load(8, 2), head)
            assert shown_answers(widget) == torch_answers(text, model)
            assert shown_answers(widget)[head] != ["ball", "dog"][head]
            switch.click()
        assert shown_answers(widget) == ["ball", "dog"]


def test_what_the_model_cannot_read_is_said(visit, site):
    with visit(f"{site}/index.html") as v:
        v.mount_all()
        notes = v.page.locator(".notes").first
        widget = write(v, "the zebra saw a yeti")
        assert "does not know “zebra” and “yeti”; it reads <unk>" in notes.inner_text()
        widget = write(v, "the old king")
        assert "no verb in it that the model knows" in widget.locator(".answers").inner_text()
        widget = write(v, 'the <b>dog</b> saw <img src=x> & "')
        assert widget.locator("b, img").count() == 0, "what is typed is text"
        widget = write(v, "the dog saw " * 12)
        assert (
            f"at most {LONGEST} tokens; this sentence has 36"
            in widget.locator(".error").inner_text()
        )
        widget = write(v, "the ball was chased by a dog")
        assert "never met “was” and “by”" in notes.inner_text()
        write(v, "")
        assert notes.inner_text() == ""
        v.assert_no_trouble()


def kinds_read(stem):
    """What the explorers of a page read, by their titles."""
    notebook = json.loads((BOOK / f"{stem}.ipynb").read_text("utf-8"))
    states = [m["state"] for m in notebook["metadata"]["widgets"][WIDGET_STATE]["state"].values()]
    return {state["title"]: state["reads"]["kind"] for state in states if "reads" in state}


@pytest.mark.parametrize("stem", CHAPTERS[1:])
def test_the_sentence_goes_along(visit, site, stem):
    """From page to page, in the pictures of every explorer that reads such sentences, and into no
    address or cookie.
    """
    with visit(f"{site}/index.html") as v:
        v.mount_all()
        write(v, OWN[0])
        v.page.goto(f"{site}/{stem}.html")
        assert v.mount_all()
        read = kinds_read(stem)
        for widget in v.page.locator(".static-widget").all():
            view = widget.locator(".explorer-view")
            is_read = read[widget.get_attribute("data-title")] == "sentence"
            assert view.locator(".own input").input_value() == (OWN[0] if is_read else "")
            if not is_read:
                continue
            labels = view.locator("svg[data-name] text.row").all_text_contents()
            assert any(label.startswith("teacher") for label in labels)
        for text in OWN[1:]:
            view = write(v, text)
            v.page.wait_for_function(
                "word => document.querySelector('[data-picture]').textContent.includes(word)",
                arg=tokenize(text)[1],
            )
        v.page.locator(".explorer-view .own [type=reset]").first.click()
        assert own_field(v).input_value() == ""
        assert not v.page.context.cookies()
        v.assert_no_trouble()


def test_what_is_off_the_screen_follows(visit, site):
    """A letter draws the panels that are seen; a pause draws the others."""
    with visit(f"{site}/02-projecting-to-q-k-v.html", width=390, height=500) as v:
        v.mount_all()
        widget = v.page.locator(".explorer-view:has(.panel.sym-v)")
        widget.locator(".own input").scroll_into_view_if_needed()
        v.page.wait_for_timeout(100)  # until the browser has said which panels are seen
        labels = """explorer => [...explorer.querySelectorAll(".panel.sym-v text.row")]
            .map(label => label.textContent)"""
        at_once = widget.evaluate(
            f"""explorer => {{
              const field = explorer.querySelector(".own input");
              field.value = "a sailor found the bell";
              field.dispatchEvent(new Event("input", {{bubbles: true}}));
              return ({labels})(explorer);
            }}"""
        )
        assert "sailor 1" not in at_once, "what is off the screen was drawn with the letter"
        v.page.wait_for_function(
            f"explorer => ({labels})(explorer).includes('sailor 1')", arg=widget.element_handle()
        )
        v.assert_no_trouble()


def test_a_page_that_computes_otherwise_refuses(visit, site):
    right, wrong = BROKEN["a scale of 1/d_key"]
    with visit("about:blank") as v:
        v.host = site.split("//")[1]

        def broken(route):
            answer = route.fetch()
            body = answer.text()
            assert right in body
            route.fulfill(response=answer, body=body.replace(right, wrong))

        v.page.route("**/saved_widgets/index.js*", broken)
        v.page.goto(f"{site}/index.html")
        v.page.locator(".static-widget").first.scroll_into_view_if_needed()
        v.page.wait_for_selector(".explorer-view .error")
        said = v.page.locator(".explorer-view .error").inner_text()
        assert "differently than torch does" in said


def test_a_map_can_be_saved(visit, site):
    with visit(f"{site}/index.html") as v:
        v.mount_all()
        widget = write(v, "the red ball chased a dog")
        widget.locator("details.tables summary").click()
        with v.page.expect_download() as download:
            widget.locator("[data-save^=csv]").first.click()
        assert download.value.suggested_filename == "weights-0.csv"
        lines = download.value.path().read_text("utf-8").splitlines()
        assert lines[0] == ',"the","red","ball","chased","a","dog"'
        verb = [float(number) for number in lines[4].split(",")[1:]]
        assert abs(sum(verb) - 1) < 1e-6 and verb[2] > 0.9
        with v.page.expect_download() as download:
            widget.locator("[data-save^=svg]").first.click()
        picture = download.value.path().read_text("utf-8")
        assert picture.startswith("<svg") and 'xmlns="http://www.w3.org/2000/svg"' in picture
        assert "class=" not in picture and "rgb(" in picture
        v.page.set_content(f"<body>{picture}</body>")
        weights = [float(number) for line in lines[1:] for number in line.split(",")[1:]]
        paths = v.page.locator("svg path:not([fill=none])").evaluate_all(
            "paths => paths.map(path => path.getAttribute('d') ?? '')"
        )
        # Twenty shades: a weight below a fortieth has none.
        coloured = sum(path.count("M") for path in paths)
        assert coloured == sum(weight >= 1 / 40 for weight in weights) >= 6
