"""The reader's own clauses: what the page answers, whole or in parts, is what torch does."""

import itertools
import random

import numpy as np
import pytest
import torch

from attention.embedding import sines_and_cosines
from attention.explore.layer import ALL_VERBS
from attention.trained import relative_clauses
from attention.trained.relative_clauses import LAYERS, VOCABULARY, draw_clauses
from attention.trained.without_parts import without_parts
from tests.site.in_page import load_module, numbers_of, text_of, view_of

CLOSE = 1e-5
SENTENCES = 100
PARTS = ("residual", "layer norm", "feed-forward")

# Of many sentences the answers as ids, how sure they are, and every weight.
ANSWERED = """
([state, sentences, at]) => {
  const model = modelOf(state);
  const stored = {verbs: state.verbs, vocabulary: state.vocabulary};
  const numbers = [];
  for (const tokens of sentences) {
    const ids = tokens.map(token => Math.max(state.vocabulary.indexOf(token), 1));
    const made = view.default.compute({tokens, ids}, at, model, {stored});
    for (const words of [made.who, made.whom])
      numbers.push(...words.map(word => state.vocabulary.indexOf(word)));
    numbers.push(...made.sure.data, ...made.weights.data);
  }
  return asText(numbers);
}
"""

# One line each, after which the page still answers.
BROKEN = {
    "no last norm": ('if (has("layer_norm")) x = layerNorm', "if (false) x = layerNorm"),
    "a residual of the normalised row": ("add(x, output)", "add(output, output)"),
    "no ReLU": ("Math.max(0, value)", "value"),
    "the other layer's norm": ("`${prefix}.${norm}`", "`encoder.layers.0.${norm}`"),
}


@pytest.fixture(scope="module")
def sentences():
    """As in training, some with a word that nobody knows."""
    rng = random.Random(0)
    drawn = [draw_clauses(rng).tokens for _ in range(SENTENCES)]
    return [[token if token != VOCABULARY.unk else "zebra" for token in each] for each in drawn]


@torch.no_grad()
def torchs(n_layers, off, sentences):
    model = without_parts(relative_clauses.load(n_layers).double(), *off)
    # The page's sines are doubles. Torch's were rounded to float32 first, which a model without
    # layer norm magnifies a thousandfold.
    table = model.positional_encoding.table
    table.copy_(sines_and_cosines(*table.shape))
    numbers = []
    for tokens in sentences:
        answer = model(VOCABULARY.encode_batch([tokens]))
        places = [place for place, token in enumerate(tokens) if token in ALL_VERBS]
        who, whom = (logits[0, places].softmax(-1) for logits in (answer.who, answer.whom))
        sure = torch.stack([who.amax(-1), whom.amax(-1)], -1)
        numbers += [who.argmax(-1), whom.argmax(-1), sure.flatten()]
        numbers += [weights.flatten() for weights in answer.weights]
    return torch.cat([each.double() for each in numbers]).numpy()


def computed(page, n_layers, off, sentences):
    view = view_of("layer")
    state = {
        "weights": text_of(view.weights),
        "model": view.models[str(n_layers)],
        "vocabulary": view.reads["vocabulary"],
        "verbs": ALL_VERBS,
    }
    names = {"residual": "residual", "layer norm": "layer_norm", "feed-forward": "feed_forward"}
    at = {name: "off" if part in off else "on" for part, name in names.items()}
    return numbers_of(page, ANSWERED, [state, sentences, at | {"n_layers": str(n_layers)}])


OFF = [off for count in range(4) for off in itertools.combinations(PARTS, count)]


@pytest.mark.parametrize("off", OFF, ids=str)
@pytest.mark.parametrize("n_layers", LAYERS)
def test_the_page_answers_what_torch_does(module_page, sentences, n_layers, off):
    load_module(module_page, "layer")
    found = computed(module_page, n_layers, off, sentences)
    np.testing.assert_allclose(found, torchs(n_layers, off, sentences), atol=CLOSE, rtol=0)


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_module_is_caught(module_page, sentences, mistake):
    load_module(module_page, "layer", BROKEN[mistake])
    few = sentences[:20]
    found = computed(module_page, 2, (), few)
    assert not np.abs(found - torchs(2, (), few)).max() < 100 * CLOSE
