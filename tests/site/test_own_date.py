"""The reader's own date: what the page reads and writes without torch is what torch does."""

import random
import string

import numpy as np
import pytest
import torch

from attention.trained.dates import LETTERS, LONGEST, SIGN_NAMES, SIGNS, START, draw_dates, load
from tests.site.in_page import load_module, numbers_of, text_of, view_of

CLOSE = 1e-5
DATES = 300

# Of many dates the signs as ids, then every share and weight, as the bytes of doubles.
WRITTEN = """
([state, dates]) => {
  const model = modelOf(state);
  const stored = {vocabulary: state.signs};
  const numbers = [];
  for (const text of dates) {
    const tokens = [...text];
    const ids = tokens.map(token => state.vocabulary.indexOf(token));
    const made = view.default.compute({tokens, ids}, {}, model, {stored});
    numbers.push(...made.signs.map(sign => state.signs.indexOf(sign)));
    for (const name of ["shares", "encoder", "own", "cross"]) numbers.push(...made[name].data);
  }
  return asText(numbers);
}
"""

# One line each, after which the page still writes dates.
BROKEN = {
    "no feed-forward in the decoder": (
        "x = addFeedForward(add(x, cross.output), model, layer);",
        "x = add(x, cross.output);",
    ),
    "the newest sign alone": ("cached ? fresh.map", "false ? fresh.map"),
    "letters as the encoder got them": ('layerNorm(x, model, "encoder.norm")', "x"),
    "every sign at the first place": ("positions.at(i).data", "positions.at(0).data"),
    "the sample's variance": ("** 2, 0) / columns + eps", "** 2, 0) / (columns - 1) + eps"),
}


@pytest.fixture(scope="module")
def dates():
    """Dates of every kind, and texts that are none."""
    rng = random.Random(0)
    texts = [date.text for date in draw_dates(DATES, rng)]
    letters = string.ascii_lowercase + string.digits + " ,-"
    for length in (1, 2, 5, 30, LONGEST):
        texts.append("".join(rng.choices(letters, k=length)))
    return texts


@torch.no_grad()
def torchs(dates):
    model = load("transformer").double()
    numbers = []
    for text in dates:
        letters = LETTERS.encode_batch([list(text)])
        signs = model.write(letters)
        before = torch.cat([torch.tensor([[START]]), signs[:, :-1]], dim=1)
        logits, *weights = model.transformer(letters, before)
        numbers += [signs.flatten(), logits.softmax(-1).flatten()]
        for (heads,) in (layer[0] for layer in weights):
            numbers += [heads.flatten(), heads.mean(0).flatten()]
    return torch.cat([each.double() for each in numbers]).numpy()


def computed(page, dates):
    view = view_of("writing")
    state = {
        "weights": text_of(view.weights),
        "model": view.models["transformer"],
        "vocabulary": view.reads["vocabulary"],
        "signs": SIGN_NAMES,
    }
    return numbers_of(page, WRITTEN, [state, dates])


def test_hundreds_of_dates_agree_with_torch(module_page, dates):
    load_module(module_page, "writing")
    np.testing.assert_allclose(computed(module_page, dates), torchs(dates), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, dates, mistake):
    load_module(module_page, "writing", BROKEN[mistake])
    few = dates[:20]
    assert not np.abs(computed(module_page, few) - torchs(few)).max() < 100 * CLOSE


@pytest.mark.quick
def test_a_date_typed_without_a_network(visit, site):
    with visit(f"{site}/13-the-whole-transformer.html") as v:
        v.mount_all()
        v.page.context.set_offline(True)
        widget = v.page.locator(".explorer-view:has(.own:not([hidden]))")
        field, status = widget.locator(".own input"), widget.locator(".status")
        for text in ("the 1st of May, 2024", "31 december nineteen ninety-nine"):
            field.fill(text)
            letters = LETTERS.encode_batch([list(text.lower())])
            signs = SIGNS.decode(load("transformer").write(letters)[0])
            assert f"in the end {''.join(signs[:-1])}" in status.inner_text()
        field.fill("4/3/1973")
        assert "does not know “/”" in widget.locator(".error").inner_text()
        field.fill("1" * (LONGEST + 1))
        assert f"at most {LONGEST} tokens; this date has {LONGEST + 1}" in (
            widget.locator(".error").inner_text()
        )
        field.fill("")
        assert "in the end 1973-03-04" in status.inner_text()
        v.assert_no_trouble()
