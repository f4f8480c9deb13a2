"""The painted mask: what the page computes of any mask without torch is what torch computes."""

import random

import numpy as np
import pytest
import torch

from attention.explore.paint_a_mask import (
    SENTENCE,
    STARTS,
    book_model,
    count_right,
    starting_mask,
    two_verb_batch,
)
from attention.trained.who_and_whom import VOCABULARY, find_verbs, new_sentences
from tests.site.in_page import load_module, numbers_of, text_of, view_of

CLOSE = 1e-5
SENTENCES = 200

# Of many sentences, each with its mask: the mask, weights, answers and the count.
PAINTED = """
([state, tasks]) => {
  const model = modelOf(state);
  const numbers = [];
  for (const [tokens, start_from, cells] of tasks) {
    const ids = tokens.map(token =>
      token === "<pad>" ? 0 : Math.max(state.vocabulary.indexOf(token), 1));
    const memory = {painted: {[start_from]: cells}};
    const made = view.default.compute({tokens, ids}, {start_from}, model, {memory});
    const words = made.answers.map(word => state.vocabulary.indexOf(word));
    numbers.push(...made.mask.data, ...made.weights.data, ...made.shares.data, ...words);
    numbers.push(made.right, made.of);
  }
  return asText(numbers);
}
"""

# One line each, after which the page still shows weights and a count.
BROKEN = {
    "the wrong way round": ("?? RULES[start](", "?? !RULES[start]("),
    "the axes exchanged": ("painted[`${query} ${key}`]", "painted[`${key} ${query}`]"),
    "what was painted is forgotten": ("painted[`${query} ${key}`] ?? ", ""),
    "the future is open": ("!isPad && key <= query", "!isPad"),
    "the previous word": ("key === query + 1", "key === query - 1"),
    "a count under no mask": ("may(verbs[nth][0], key)", "true"),
    "a count with the row of the nth word": ("may(verbs[nth][0], key)", "may(nth, key)"),
    "a count of one answer": (" && argmax(second.at(nth).data) === whom", ""),
    "weights that do not sum to 1": ("weights.data[row * keys + key] /= sum", "0"),
}


@pytest.fixture(scope="module")
def tasks():
    """Sentences, each with a start and cells of its own; pads, and rows that see nothing."""
    rng, drawn = random.Random(0), []
    for nth, sentence in enumerate(new_sentences(count=SENTENCES)):
        tokens = [*sentence.tokens, *["<pad>"] * rng.randint(0, 2)]
        if rng.random() < 0.2:
            tokens[sentence.verbs[0].who] = "zebra"
        places = range(len(tokens))
        share = rng.choice((0.02, 0.2, 0.6))
        cells = {
            f"{q} {k}": rng.random() < 0.5 for q in places for k in places if rng.random() < share
        }
        if nth % 3 == 0:
            hidden = rng.choice((*places, *[verb.place for verb in sentence.verbs] * 5))
            cells |= {f"{hidden} {key}": False for key in places}
        drawn.append((tokens, STARTS[nth % len(STARTS)], cells))
    return drawn


def painted_over(mask, cells):
    mask = mask.clone()
    for place, may in cells.items():
        query, key = map(int, place.split())
        if max(query, key) < mask.shape[-1]:
            mask[..., query, key] = may
    return mask


@torch.no_grad()
def torchs(tasks):
    model, batch = book_model(), two_verb_batch()
    numbers = []
    for tokens, start, cells in tasks:
        token_ids = VOCABULARY.encode_batch([tokens])
        mask = painted_over(starting_mask(start, token_ids), cells)
        output, weights = model.attention(model.embed(token_ids).double(), mask=mask)
        verbs = torch.tensor(find_verbs(tokens))
        logits = model.read(output.expand(len(verbs), -1, -1), verbs)
        sure, words = torch.stack(logits, dim=1).softmax(-1).max(-1)
        whole = painted_over(starting_mask(start, batch.token_ids), cells)
        counts = torch.tensor([count_right(model, batch, whole), len(batch.verb)])
        numbers += [mask, weights, sure, words, counts]
    return torch.cat([each.double().flatten() for each in numbers]).numpy()


@pytest.fixture(scope="module")
def expected(tasks):
    return torchs(tasks)


@pytest.fixture(scope="module")
def expected_of_few(tasks):
    return torchs(tasks[:24])


def painted(page, tasks):
    view = view_of("paint_a_mask")
    state = {
        "weights": text_of(view.weights),
        "model": view.models["book"],
        "vocabulary": view.reads["vocabulary"],
    }
    return numbers_of(page, PAINTED, [state, tasks])


def test_hundreds_of_masks_agree_with_torch(module_page, tasks, expected):
    load_module(module_page, "paint_a_mask")
    np.testing.assert_allclose(painted(module_page, tasks), expected, rtol=0, atol=CLOSE)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, tasks, expected_of_few, mistake):
    load_module(module_page, "paint_a_mask", BROKEN[mistake])
    found = painted(module_page, tasks[:24])
    assert not np.abs(found - expected_of_few).max() < 100 * CLOSE


# ------------------------------------------------------------------------------------- on the page

OWN = "the fox bit the wolf and the wolf bit the fox"


def said_by_torch(text, cells, start="nothing hidden"):
    """The count, and what both verbs answer."""
    model, batch = book_model(), two_verb_batch()
    tokens = [*text.split(), "<pad>"]
    token_ids = VOCABULARY.encode_batch([tokens])
    mask = painted_over(starting_mask(start, token_ids), cells)
    output, _ = model.attention(model.embed(token_ids).double(), mask=mask)
    verbs = torch.tensor(find_verbs(tokens))
    logits = model.read(output.expand(len(verbs), -1, -1), verbs)
    words = VOCABULARY.decode(torch.stack(logits, dim=1).argmax(-1).flatten().tolist())
    whole = painted_over(starting_mask(start, batch.token_ids), cells)
    return count_right(model, batch, whole), words


def check_page(widget, text, cells):
    right, words = said_by_torch(text, cells)
    assert f"right at {right} of 600 verbs" in widget.locator(".status").inner_text()
    answers = widget.locator("[data-answer]")
    assert answers.evaluate_all("all => all.map(each => each.dataset.answer)") == words
    height = len(text.split()) + 1
    mask, weights = widget.evaluate(
        """view => ["mask", "weights 0"].map(name => [...view.querySelector("[data-picture]")
             .matrices.find(each => each.name === name).tensor.data])"""
    )
    for place, may in cells.items():
        query, key = map(int, place.split())
        assert mask[query * height + key] == may
        assert may or weights[query * height + key] == 0


@pytest.mark.parametrize(("width", "text"), [(1280, SENTENCE), (360, OWN)])
def test_cells_are_switched_by_mouse_touch_and_keyboard(visit, site, width, text):
    with visit(f"{site}/05-masking.html", width=width, has_touch=True) as v:
        v.mount_all()
        widget = v.page.locator(".explorer-view:has([data-act='start again'])").first
        readout = widget.locator(".readout")
        widget.locator(".own input").fill(text)
        check_page(widget, text, {})
        widget.locator("[data-act='cell 2 1']").click()
        assert readout.inner_text().startswith("Off: ")
        check_page(widget, text, {"2 1": False})
        widget.locator("[data-act='cell 8 10']").tap()
        assert readout.inner_text().startswith("Off: ")
        check_page(widget, text, {"2 1": False, "8 10": False})
        widget.locator("[data-cursor]").focus()
        for key in ("ArrowLeft", "Enter"):
            v.page.keyboard.press(key)
        check_page(widget, text, {"2 1": False, "8 10": False, "8 9": False})
        v.page.keyboard.press("Space")
        assert readout.inner_text().startswith("On: ")
        check_page(widget, text, {"2 1": False, "8 10": False, "8 9": True})
        for key in range(12):
            if key not in (1,):
                widget.locator(f"[data-act='cell 2 {key}']").click()
        # A drag over cells, and a word at the left for its row.
        check_page(widget, text, {"8 10": False} | {f"2 {key}": False for key in range(12)})
        widget.locator("[data-act='row 2']").click()
        check_page(widget, text, {"8 10": False} | {f"2 {key}": True for key in range(12)})
        boxes = [widget.locator(f"[data-act='cell 2 {key}']").bounding_box() for key in (0, 11)]
        for nth, box in enumerate(boxes):
            middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            v.page.mouse.move(*middle, steps=40)
            if not nth:
                v.page.mouse.down()
        v.page.mouse.up()
        assert "all their weights are 0: " in widget.locator(".picture > .note").first.inner_text()
        check_page(widget, text, {"8 10": False} | {f"2 {key}": False for key in range(12)})
        widget.locator("[data-act='start again']").click()
        check_page(widget, text, {})
        v.assert_no_trouble()
