"""The reader's own sequence: what the page computes, with heads on and off, is what torch does."""

import random

import numpy as np
import pytest
import torch

from attention.trained import induction
from attention.trained.induction import LAYERS, SYMBOLS, decode, encode, new_sequences, without_head
from tests.site.in_page import load_module, numbers_of, text_of, view_of

CLOSE = 1e-5
# Layer and head; (1, 0) and (1, 1) exist with two layers alone.
OFF = [[], [(0, 0)], [(0, 1)], [(1, 0)], [(0, 1), (1, 1)], [(1, 0), (1, 1)]]

# Of many sequences every weight and share, one after another, as the bytes of doubles.
COMPUTED = """
([state, sequences, off]) => {
  const model = modelOf(state);
  const memory = {};
  for (const head of off) view.default.act(`head ${head}`, memory);
  const numbers = [];
  for (const text of sequences) {
    const tokens = view.default.split(text);
    const ids = tokens.map(token => state.vocabulary.indexOf(token));
    const at = {layers: state.layers};
    const made = view.default.compute({tokens, ids}, at, model, {stored: {}, memory});
    for (const name of ["layer0", "layer1", "shares"]) numbers.push(...made[name]?.data ?? []);
  }
  return asText(numbers);
}
"""

# One line each, after which the page still answers.
BROKEN = {
    "no causal mask": ("`layers.${layer}`, causalMask)", "`layers.${layer}`)"),
    "no positions": ("+ places.data[r * dModel + c]", ""),
    "every token at the first place": ("places.data[r * dModel + c]", "places.data[c]"),
    "the layer's input lost": ("x = add(x, linear(", "x = (linear("),
    "the other head switched off": ("Math.floor(i / size)", "1 - Math.floor(i / size)"),
}


@pytest.fixture(scope="module")
def sequences():
    """As in training, and of every length, in which any token comes any number of times."""
    rng = random.Random(0)
    drawn = [decode(row) for row in new_sequences(20).token_ids]
    return drawn + ["".join(rng.choices(SYMBOLS, k=length)) for length in range(1, 33)]


@torch.no_grad()
def torchs(layers, sequences, off):
    model = induction.load(layers).double()
    for layer, head in off:
        model = without_head(model, head, layer=layer)
    numbers = []
    for text in sequences:
        logits, weights = model(encode(text))
        numbers += [*(each.flatten() for each in weights), logits.softmax(-1).flatten()]
    return torch.cat(numbers).numpy()


def computed(page, layers, sequences, off):
    view = view_of("induction")
    state = {
        "weights": text_of(view.weights),
        "model": view.models[str(layers)],
        "vocabulary": view.reads["vocabulary"],
        "layers": str(layers),
    }
    heads = [f"{layer}.{head}" for layer, head in off]
    return numbers_of(page, COMPUTED, [state, sequences, heads])


@pytest.mark.parametrize("off", OFF, ids=str)
@pytest.mark.parametrize("layers", LAYERS)
def test_the_page_computes_what_torch_does(module_page, sequences, layers, off):
    off = [(layer, head) for layer, head in off if layer < layers]
    load_module(module_page, "induction")
    found = computed(module_page, layers, sequences, off)
    np.testing.assert_allclose(found, torchs(layers, sequences, off), atol=CLOSE, rtol=0)


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, sequences, mistake):
    load_module(module_page, "induction", BROKEN[mistake])
    few, off = sequences[:5], [(0, 1)]
    found = computed(module_page, 2, few, off)
    assert not np.abs(found - torchs(2, few, off)).max() < 100 * CLOSE


def test_a_sequence_is_read_without_its_spaces_and_in_small_letters(module_page):
    load_module(module_page, "induction")
    split = module_page.evaluate("text => view.default.split(text)", "The cat\t5")
    assert split == list("thecat5")
