"""The reader's own text: what the page computes of it without torch is what torch computes."""

import inspect
import itertools
import json
import random
import re
import string
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import attention.explore
from attention.embedding import sines_and_cosines
from attention.example import SENTENCES
from attention.explore.alignment import ATTENTIONS
from attention.explore.layer import ALL_VERBS
from attention.masks import padding_mask
from attention.text import tokenize
from attention.trained import dates, induction, relative_clauses, who_and_whom
from attention.trained.dates import LETTERS, LONGEST, SIGN_NAMES
from attention.trained.who_and_whom import SIZES, VOCABULARY, find_verbs
from attention.trained.without_parts import without_parts
from tests.site.conftest import BOOK
from tests.site.in_page import load_module, numbers_of, text_of, view_of
from tools.widget_state import WIDGET_STATE

CLOSE = 1e-5

# ------------------------------------------------------------------------------- texts, as tokens


@cache
def sentences():
    """Of every kind, some with a word that nobody knows, some padded."""
    rng = random.Random(0)
    drawn = [s.tokens for s in who_and_whom.draw_sentences(250, passive=True, places=True, seed=3)]
    for tokens in drawn:
        if rng.random() < 0.2:
            tokens[rng.randrange(len(tokens))] = "zebra"
        if rng.random() < 0.2:
            tokens += ["<pad>"] * rng.randint(1, who_and_whom.LONGEST - len(tokens))
    return drawn


@cache
def sentences_of_the_book():
    return [tokenize(text) for text in SENTENCES]


@cache
def clauses():
    """As in training, some with a word that nobody knows."""
    rng = random.Random(0)
    unknown = relative_clauses.VOCABULARY.unk
    drawn = [relative_clauses.draw_clauses(rng).tokens for _ in range(100)]
    return [[token if token != unknown else "zebra" for token in tokens] for tokens in drawn]


@cache
def written_dates():
    """Dates of every kind, dates that nobody was trained on, and texts that are none."""
    rng = random.Random(0)
    texts = [date.text for date in dates.draw_dates(100, rng)]
    texts += ["february 30, 2000", "4 july 1776", "1-2-2003", "hello", " ", "-", ",,,", "0"]
    letters = string.ascii_lowercase + string.digits + " ,-"
    for length in (1, 2, 5, 30, LONGEST):
        texts += ["".join(rng.choices(letters, k=length)), letters[length % 39] * length]
    return [list(text) for text in texts]


@cache
def sequences():
    """As in training, and of every length, in which any token comes any number of times."""
    rng = random.Random(0)
    drawn = [list(induction.decode(row)) for row in induction.new_sequences(20).token_ids]
    return drawn + [rng.choices(induction.SYMBOLS, k=length) for length in range(1, 33)]


# ----------------------------------------------------------------------- what torch makes of them


def answers(d_model, n_heads, texts):
    model = who_and_whom.load(d_model, n_heads).double()
    for tokens in texts:
        token_ids = VOCABULARY.encode_batch([tokens])
        mask = padding_mask(token_ids, VOCABULARY.pad_id)
        output, weights = model.attention(model.embed(token_ids).double(), mask=mask)
        who, whom = model.read(output, torch.tensor((find_verbs(tokens) or [0])[:1]))
        yield from (weights, who.softmax(-1), whom.softmax(-1))


def projections_without_bias(d_model, n_heads, texts):
    model = who_and_whom.load(d_model, n_heads).double()
    for tokens in texts:
        x = model.embed(VOCABULARY.encode_batch([tokens])).double()
        for layer in (model.attention.w_q, model.attention.w_k, model.attention.w_v):
            yield x @ layer.weight.T
        yield torch.tensor([3 * d_model * d_model, 3 * d_model * d_model / n_heads])


def transformers_dates(texts):
    model = dates.load("transformer").double()
    for letters in texts:
        letter_ids = LETTERS.encode_batch([letters])
        signs = model.write(letter_ids)
        before = torch.cat([torch.tensor([[dates.START]]), signs[:, :-1]], dim=1)
        logits, *weights = model.transformer(letter_ids, before)
        yield from (signs, logits.softmax(-1))
        for (heads,) in (layer[0] for layer in weights):
            yield from (heads, heads.mean(0))


def recurrent_dates(attention, texts):
    model = dates.load(ATTENTIONS[attention]).double()
    ends = set()
    for letters in texts:
        encoded = model.encoder(LETTERS.encode_batch([letters]))
        signs, weights = model.decoder.greedy(
            encoded, start_id=dates.START, end_id=dates.END, max_length=dates.ANSWER
        )
        ends.add((signs.shape[1] < dates.ANSWER, signs[0, -1].item() == dates.END))
        if weights.any():
            context = weights @ encoded
        else:
            half = encoded.shape[-1] // 2
            context = torch.cat((encoded[0, -1, :half], encoded[0, 0, half:]))
            weights, context = weights[:0], context.expand(signs.shape[1], -1)
        yield from (signs, weights, context)
    if attention == "dot" and len(texts) > 100:  # among all texts are both ends of the loop
        assert {(True, True), (False, False)} <= ends


def answers_of_clauses(n_layers, off, texts):
    model = without_parts(relative_clauses.load(n_layers).double(), *off)
    # The page's sines are doubles. Torch's were rounded to float32 first, which a model without
    # layer norm magnifies a thousandfold.
    table = model.positional_encoding.table
    table.copy_(sines_and_cosines(*table.shape))
    for tokens in texts:
        answer = model(relative_clauses.VOCABULARY.encode_batch([tokens]))
        places = [place for place, token in enumerate(tokens) if token in ALL_VERBS]
        who, whom = (logits[0, places].softmax(-1) for logits in (answer.who, answer.whom))
        yield from (who.argmax(-1), whom.argmax(-1))
        yield torch.stack([who.amax(-1), whom.amax(-1)], -1)
        yield from answer.weights


def continuations(layers, off, texts):
    model = induction.load(layers).double()
    for layer, head in off:
        model = induction.without_head(model, head, layer=layer)
    for tokens in texts:
        logits, weights = model(induction.encode("".join(tokens)))
        yield from (*weights, logits.softmax(-1))


# --------------------------------------------------------------------- what the page makes of them

# All numbers of what is named, text by text, as the bytes of doubles. A word stands for its place
# among the words that may be answered.
COMPUTED = """
([state, texts]) => {
  const model = modelOf(state);
  const memory = {};
  for (const act of state.acts) view.default.act(act, memory);
  const shared = {stored: state.stored, memory};
  const numberOf = each => typeof each === "string" ? state.stored.vocabulary.indexOf(each) : each;
  const numbers = [];
  for (const tokens of texts) {
    const ids = tokens.map(token => state.vocabulary.indexOf(token)).map(id => id < 0 ? 1 : id);
    const made = view.default.compute({tokens, ids}, state.at, model, shared);
    for (const name of state.names) {
      numbers.push(...Array.from(made[name]?.data ?? [made[name] ?? []].flat(), numberOf));
    }
  }
  return asText(numbers);
}
"""


class Own(NamedTuple):
    """What is written into a view, and which of the numbers that it makes torch makes as well."""

    view: str
    model: str
    texts: Callable
    names: str
    torchs: Callable
    at: dict | None = None  # where the controls stand
    acts: list[str] | None = None  # what is pressed

    def difference(self, page, texts):
        """The largest between the page's numbers and torch's."""
        with torch.no_grad():
            expected = torch.cat([each.double().flatten() for each in self.torchs(texts)]).numpy()
        view = view_of(self.view)
        state = {
            "weights": text_of(view.weights),
            "model": view.models[self.model],
            "vocabulary": view.reads["vocabulary"],
            "stored": next(iter(view.frames.values())),
            "names": self.names.split(),
            "at": self.at or {},
            "acts": self.acts or [],
        }
        found = numbers_of(page, COMPUTED, [state, texts])
        return np.abs(found - expected).max() if found.shape == expected.shape else np.inf


PARTS = {"residual": "residual", "layer norm": "layer_norm", "feed-forward": "feed_forward"}
PARTS_OFF = [off for count in range(4) for off in itertools.combinations(PARTS, count)]
# Layer and head; (1, 0) and (1, 1) exist with two layers alone.
HEADS_OFF = [(), ((0, 0),), ((0, 1),), ((1, 0),), ((0, 1), (1, 1)), ((1, 0), (1, 1))]

OWN = {}
for size in SIZES:
    model = "{},{}".format(*size)
    OWN[f"sentence, {size}"] = Own(
        "who_and_whom", model, sentences, "weights who whom", partial(answers, *size)
    )
    # Without a bias, of which no frame is stored: it has no b_q.
    names, torchs = "q k v parameters head_parameters b_q", partial(projections_without_bias, *size)
    OWN[f"projection, {size}"] = Own(
        "projection", model, sentences_of_the_book, names, torchs, {"bias": "off"}
    )
names = "signs shares encoder own cross"
OWN["date"] = Own("writing", "transformer", written_dates, names, transformers_dates)
for attention_of in ATTENTIONS:
    torchs, at = partial(recurrent_dates, attention_of), {"attention": attention_of}
    OWN[f"date, {attention_of}"] = Own(
        "alignment", attention_of, written_dates, "signs weights context", torchs, at
    )
for n, off in itertools.product(relative_clauses.LAYERS, PARTS_OFF):
    at = {name: "off" if part in off else "on" for part, name in PARTS.items()}
    at["n_layers"] = str(n)
    OWN[f"clauses, {n}, without {off}"] = Own(
        "layer", str(n), clauses, "who whom sure weights", partial(answers_of_clauses, n, off), at
    )
for n, off in itertools.product(induction.LAYERS, HEADS_OFF):
    off = tuple((layer, head) for layer, head in off if layer < n)
    acts = [f"head {layer + 1}.{head}" for layer, head in off]
    torchs, at = partial(continuations, n, off), {"layers": str(n)}
    OWN[f"sequence, {n}, without {off}"] = Own(
        "induction", str(n), sequences, "layer0 layer1 shares", torchs, at, acts
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OWN)
def test_the_page_computes_what_torch_does(module_page, name):
    load_module(module_page, OWN[name].view)
    assert OWN[name].difference(module_page, OWN[name].texts()) < CLOSE


# One line each, and what a reader of the page would take for an answer all the same: whether it is
# seen depends on the texts.
BROKEN = {
    "no mask": (
        "sentence, (8, 2)",
        "return (_query, key) => tokens[key] !== PAD",
        "return () => true",
    ),
    "a bias that stays": ("projection, (8, 2)", ", bias && b)", ", b)"),
    "the newest sign alone": ("date", "cached ? fresh.map", "false ? fresh.map"),
    "a first state from the left": (
        "date, dot",
        "dense(readFromRight(encoded)",
        "dense(readFromLeft(encoded)",
    ),
    "the other layer's norm": (
        "clauses, 2, without ()",
        "`${prefix}.${norm}`",
        "`encoder.layers.0.${norm}`",
    ),
    "the other head switched off": (
        "sequence, 2, without ((0, 1),)",
        "Math.floor(i / size)",
        "1 - Math.floor(i / size)",
    ),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, mistake):
    name, right, wrong = BROKEN[mistake]
    load_module(module_page, OWN[name].view, (right, wrong))
    assert OWN[name].difference(module_page, OWN[name].texts()[:20]) > 100 * CLOSE


def test_without_a_bias_it_is_said(module_page):
    load_module(module_page, "projection")
    describe = "frame => view.default.describe({name: 'q', r: 0, c: 0, value: 1}, frame)"
    said = module_page.evaluate(describe, {"tokens": ["a"], "d_key": 4})
    assert said.endswith("No bias.")


def test_a_sequence_is_read_without_its_spaces_and_in_small_letters(module_page):
    load_module(module_page, "induction")
    split = module_page.evaluate("text => view.default.split(text)", "The cat\t5")
    assert split == list("thecat5")


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

READS_NOTHING = [
    name
    for name in attention.explore.__all__
    if "reads=None" in inspect.getsource(getattr(attention.explore, name))
]
READING = [name for name in attention.explore.__all__ if name not in READS_NOTHING]


@pytest.mark.parametrize("name", READS_NOTHING)
def test_where_nothing_can_be_written_the_page_computes_nothing(module_page, name):
    load_module(module_page, name.removesuffix("_explorer"))
    assert module_page.evaluate("() => view.default.compute === undefined")


@pytest.mark.parametrize("name", READING)
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

OWN_SENTENCES = [
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


def own_view(v):
    return v.page.locator(".explorer-view:has(.own:not([hidden]))").first


def write(v, text):
    """Write into the first explorer of a page that reads text; returns it when it has drawn."""
    view = own_view(v)
    view.locator(".own input").fill(text)
    v.page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    return view


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
        for text in OWN_SENTENCES:
            assert shown_answers(write(v, text)) == torch_answers(text), text
        same = []
        for e in ("é", "e\u0301"):  # a letter that comes with its accent, and one that comes apart
            maps = write(v, f"the caf{e} saw the dog").locator(".panel.later")
            expect(maps.first).to_contain_text("café")  # the maps wait until the typing rests
            same.append(own_view(v).inner_text())
            write(v, "the dog saw the cat")
            expect(maps.first).not_to_contain_text("café")
        assert same[0] == same[1]
        v.assert_no_trouble()


@pytest.mark.parametrize(
    ("stem", "shows"),
    [
        ("index", "[data-act^='ask']"),
        ("02-projecting-to-q-k-v", "[data-act^='ask']"),
        ("06-weighted-sums-and-merging", "[data-act^='mark']"),
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
            model = who_and_whom.without_head(who_and_whom.load(8, 2), head)
            assert shown_answers(widget) == torch_answers(text, model)
            assert shown_answers(widget)[head] != ["ball", "dog"][head]
            switch.click()
        assert shown_answers(widget) == ["ball", "dog"]


DATES = ("the 1st of May, 2024", "  31 December  nineteen ninety-nine", "hello")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("stem", "models"),
    [("09-before-transformers", ATTENTIONS), ("13-the-whole-transformer", {None: "transformer"})],
)
def test_dates_typed_without_a_network(visit, site, stem, models):
    with visit(f"{site}/{stem}.html") as v:
        v.mount_all()
        v.page.context.set_offline(True)
        menus = v.page.locator(".static-widget:has(.own:not([hidden])) .sw-control select")
        for label, name in models.items():
            if label:
                menus.last.select_option(label=label)
            for text in DATES:
                view = write(v, text)
                letters = LETTERS.encode_batch([list(" ".join(text.lower().split()))])
                signs = [SIGN_NAMES[i] for i in dates.load(name).write(letters)[0]]
                written = "".join(signs).removesuffix("end")
                assert view.locator(".status").inner_text().endswith(f" · in the end {written}")
                if label:  # nobody knows how many signs are right; drawn a moment after the status
                    drawn = view.locator("svg.written").first
                    without_right = re.compile("^Written: (?!.*Right: )")
                    expect(drawn).to_have_attribute("aria-label", without_right)
        v.assert_no_trouble()


# What is typed, and what is said where; nothing, where the words are "".
SAID = {
    "index": [
        ("the zebra saw a yeti", ".notes", "does not know “zebra” and “yeti”; it reads <unk>"),
        ("the old king", ".answers", "no verb in it that the model knows"),
        ("the dog saw " * 12, ".error", "at most 34 tokens; this sentence has 36"),
        ("the ball was chased by a dog", ".notes", "never met “was” and “by”"),
        ("", ".notes", ""),
    ],
    "09-before-transformers": [
        ("4/3/1973", ".error", "does not know “/”"),
        ("3 März 1973", ".error", "does not know “ä”"),
        ("1" * LONGEST, ".error", ""),
        ("1" * (LONGEST + 1), ".error", f"more than {LONGEST} letters"),
        # The page knows what this one means.
        ("friday, the 26th of may, 1916", ".status", "of 10 signs right in the end"),
        ("   ", ".status", "of 10 signs right in the end"),
    ],
    "13-the-whole-transformer": [
        ("4/3/1973", ".error", "does not know “/”"),
        ("1" * (LONGEST + 1), ".error", f"at most {LONGEST} tokens; this date has {LONGEST + 1}"),
        ("", ".status", "in the end 1973-03-04"),
    ],
}


@pytest.mark.quick
@pytest.mark.parametrize("stem", SAID)
def test_what_cannot_be_read_is_said(visit, site, stem):
    with visit(f"{site}/{stem}.html") as v:
        v.mount_all()
        for text, where, words in SAID[stem]:
            said = " ".join(write(v, text).locator(where).all_inner_texts())
            assert words in said if words else not said, text
        view = write(v, 'the <b>dog</b> saw <img src=x> & "')
        assert view.locator("b, img").count() == 0, "what is typed is text"
        v.assert_no_trouble()


def kinds_read(stem):
    """What the explorers of a page read, by their titles."""
    notebook = json.loads((BOOK / f"{stem}.ipynb").read_text("utf-8"))
    states = [m["state"] for m in notebook["metadata"]["widgets"][WIDGET_STATE]["state"].values()]
    return {state["title"]: state["reads"]["kind"] for state in states if "reads" in state}


@pytest.mark.parametrize("stem", ["02-projecting-to-q-k-v", "07-the-whole-module"])
def test_the_sentence_goes_along(visit, site, stem):
    """From page to page, in the pictures of every explorer that reads such sentences, and into no
    address or cookie.
    """
    with visit(f"{site}/index.html") as v:
        v.mount_all()
        write(v, OWN_SENTENCES[0])
        v.page.goto(f"{site}/{stem}.html")
        assert v.mount_all()
        read = kinds_read(stem)
        for widget in v.page.locator(".static-widget").all():
            view = widget.locator(".explorer-view")
            is_read = read[widget.get_attribute("data-title")] == "sentence"
            assert view.locator(".own input").input_value() == (OWN_SENTENCES[0] if is_read else "")
            if not is_read:
                continue
            labels = view.locator("svg[data-name] text.row").all_text_contents()
            assert any(label.startswith("teacher") for label in labels)
        for text in OWN_SENTENCES[1:]:
            write(v, text)
            v.page.wait_for_function(
                "word => document.querySelector('[data-picture]').textContent.includes(word)",
                arg=tokenize(text)[1],
            )
        v.page.locator(".explorer-view .own [type=reset]").first.click()
        assert own_view(v).locator(".own input").input_value() == ""
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
    right, wrong = "divisor = Math.sqrt(q.shape[2])", "divisor = q.shape[2]"
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
