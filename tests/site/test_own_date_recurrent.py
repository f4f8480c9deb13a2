"""The reader's own date in chapter 9: what the page writes without torch is what torch writes."""

import random
import re
import string

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from attention.explore.alignment import ATTENTIONS
from attention.trained.dates import (
    ANSWER,
    END,
    LETTERS,
    LONGEST,
    SIGN_NAMES,
    START,
    draw_dates,
    load,
)
from tests.site.in_page import load_module, numbers_of, text_of, view_of

CLOSE = 1e-5
DATES = 100

# Of many dates how many signs are written, these as ids, and every number of the weights and the
# contexts, as the bytes of doubles.
WRITTEN = """
([state, at, dates]) => {
  const model = modelOf(state);
  const numbers = [];
  for (const text of dates) {
    const tokens = [...text];
    const ids = tokens.map(token => state.vocabulary.indexOf(token));
    const made = view.default.compute({tokens, ids}, at, model, {stored: state.stored});
    numbers.push(made.signs.length);
    numbers.push(...made.signs.map(sign => state.stored.vocabulary.indexOf(sign)));
    numbers.push(...made.weights?.data ?? [], ...made.context.data);
  }
  return asText(numbers);
}
"""

# One line each, after which the page still writes dates.
BROKEN = {
    "no input feeding": (
        "beside(embedded, before.combined)",
        "beside(embedded, before.combined.map(() => 0))",
    ),
    "the reset before the product": (
        "ofInput[forN] + r * ofState[forN]",
        "r * (ofInput[forN] + ofState[forN])",
    ),
    "an update gate that keeps the new": ("(1 - z) * n + z * old", "z * n + (1 - z) * old"),
    "both GRUs from the left": ("range(ids.length).reverse()", "range(ids.length)"),
    "a first state from the left": (
        "dense(readFromRight(encoded)",
        "dense(readFromLeft(encoded)",
    ),
    "the start at every step": ("embedding([token]", "embedding([start]"),
    "a query without tanh": ("ofKeys.at(key)).map(Math.tanh)", "ofKeys.at(key))"),
    "Luong's query before the step": (
        "const { context, weights } = attend(state);",
        "const { context, weights } = attend(before.state);",
    ),
    "Bahdanau's logits of the state before": (
        "beside(state, context, embedded)",
        "beside(before.state, context, embedded)",
    ),
}


@pytest.fixture(scope="module")
def dates():
    """Dates of every kind, dates that nobody was trained on, and texts that are none."""
    rng = random.Random(0)
    texts = [date.text for date in draw_dates(DATES, rng)]
    texts += [
        "february 30, 2000",
        "4 july 1776",
        "1-2-2003",
        "today",
        "hello",
        " ",
        "-",
        ",,,",
        "0",
    ]
    letters = string.ascii_lowercase + string.digits + " ,-"
    for length in (1, 2, 5, 30, LONGEST):
        texts += ["".join(rng.choices(letters, k=length)), letters[length % 39] * length]
    return texts


@torch.no_grad()
def torchs(attention, dates):
    model = load(ATTENTIONS[attention]).double()
    numbers = []
    for text in dates:
        encoded = model.encoder(LETTERS.encode_batch([list(text)]))
        signs, weights = model.decoder.greedy(
            encoded, start_id=START, end_id=END, max_length=ANSWER
        )
        if weights.any():
            context = weights @ encoded
        else:
            half = encoded.shape[-1] // 2
            context = torch.cat((encoded[0, -1, :half], encoded[0, 0, half:]))
            weights, context = weights[:0], context.expand(signs.shape[1], -1)
        numbers.append(torch.tensor([signs.shape[1]]))
        numbers += [each.flatten() for each in (signs, weights, context)]
    return torch.cat([each.double() for each in numbers]).numpy()


def computed(page, attention, dates):
    view = view_of("alignment")
    state = {
        "weights": text_of(view.weights),
        "model": view.models[attention],
        "vocabulary": view.reads["vocabulary"],
        "stored": view.frames["0,0"],
    }
    return numbers_of(page, WRITTEN, [state, {"attention": attention}, dates])


def differ(found, expected):
    """Whether the signs differ in number, or any number by far more than rounding does."""
    return found.shape != expected.shape or not np.abs(found - expected).max() < 100 * CLOSE


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_hundred_dates_agree_with_torch(module_page, dates, attention):
    load_module(module_page, "alignment")
    found, expected = computed(module_page, attention, dates), torchs(attention, dates)
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE)


def test_there_are_answers_that_end_early_and_never(dates):
    """Both ends of the loop that writes are among those that agree."""
    model, lengths, ends = load(ATTENTIONS["dot"]), set(), set()
    for text in dates:
        signs = model.write(LETTERS.encode_batch([list(text)]))[0]
        lengths.add(len(signs))
        ends.add(signs[-1].item() == END)
    assert min(lengths) < ANSWER and ends == {True, False}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, dates, mistake):
    load_module(module_page, "alignment", BROKEN[mistake])
    few = dates[:20]
    assert any(
        differ(computed(module_page, attention, few), torchs(attention, few))
        for attention in ATTENTIONS
    )


WITHOUT_RIGHT = re.compile("^Written: (?!.*Right: )")


@pytest.mark.quick
def test_a_date_typed_without_a_network(visit, site):
    with visit(f"{site}/09-before-transformers.html") as v:
        v.mount_all()
        v.page.context.set_offline(True)
        widget = v.page.locator(".explorer-view:has(.own:not([hidden]))")
        field, status = widget.locator(".own input"), widget.locator(".status")
        error = widget.locator(".error")
        menu = v.page.locator(".static-widget:has(.own:not([hidden])) .sw-control select").last
        for attention in ATTENTIONS:
            menu.select_option(label=attention)
            for text in ("the 1st of May, 2024", "  31 December  nineteen ninety-nine", "hello"):
                field.fill(text)
                letters = LETTERS.encode_batch([list(" ".join(text.lower().split()))])
                signs = [SIGN_NAMES[i] for i in load(ATTENTIONS[attention]).write(letters)[0]]
                written = "".join(signs).removesuffix("end")
                assert status.inner_text().endswith(f" · in the end {written}")
                drawn = widget.locator("svg.written").first  # a moment after the status
                expect(drawn).to_have_attribute("aria-label", WITHOUT_RIGHT)
        field.fill("4/3/1973")
        assert "does not know “/”" in error.inner_text()
        field.fill("3 März 1973")
        assert "does not know “ä”" in error.inner_text()
        field.fill("1" * LONGEST)
        assert error.count() == 0
        field.fill("1" * (LONGEST + 1))
        assert f"more than {LONGEST} letters" in error.inner_text()
        field.fill("friday, the 26th of may, 1916")  # the page knows what this one means
        assert "of 10 signs right in the end" in status.inner_text()
        field.fill("   ")
        assert "of 10 signs right in the end" in status.inner_text()
        v.assert_no_trouble()
