"""What is stored of SmolLM2 is what a run gives: some of it here, all of it before a release."""

import math
from copy import deepcopy

import pytest
import torch

from attention.positions.rotary import Rotary
from attention.pretrained import __main__ as command
from attention.pretrained import load
from attention.pretrained.cache_bits import with_bits
from attention.pretrained.changes import best_blocks, still
from attention.pretrained.heads import copied, repeated, without_heads
from attention.pretrained.maps import SENTENCES, from_levels
from attention.pretrained.measured import HERE, load_measured, rounded
from attention.pretrained.mistakes import BASE, D_KEY, MISTAKES, price, wrong
from attention.pretrained.next_tokens import PROMPTS, greedy
from attention.pretrained.texts import token_ids_of_texts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("as_a_reader")]

NEAR = {"rel": 5e-3, "abs": 2e-3}  # another processor adds in another order


@pytest.fixture(scope="module")
def smol():
    return load()


def assert_near(measured, stored, where=""):
    if isinstance(stored, dict):
        assert list(measured) == list(stored), where
        for name in stored:
            assert_near(measured[name], stored[name], f"{where}/{name}")
    elif isinstance(stored, list):
        assert len(measured) == len(stored), where
        for i, (a, b) in enumerate(zip(measured, stored, strict=True)):
            assert_near(a, b, f"{where}/{i}")
    elif isinstance(stored, float):
        assert measured == pytest.approx(stored, **NEAR), where
    else:
        assert measured == stored, where


@pytest.mark.everything
@pytest.mark.parametrize(
    "name", [name for name in command.MEASUREMENTS if name not in ("removals", "maps")]
)
def test_a_measurement_made_again_gives_the_same(smol, name):
    assert_near(rounded(command.MEASUREMENTS[name](smol)), load_measured(name))


@pytest.mark.parametrize("sentence", [SENTENCES[0], SENTENCES[-1]])
def test_maps_are_those_that_are_stored(smol, sentence):
    stored = load_measured("maps")[sentence]
    ids = torch.tensor([smol.tokenizer.encode(sentence).ids])
    assert [smol.tokenizer.decode([each]) for each in ids[0].tolist()] == stored["tokens"]
    weights = torch.stack(smol.model(ids)[1])[:, 0]
    apart = (from_levels(stored["levels"], stored["shape"]).sqrt() - weights.sqrt()).abs()
    assert apart.max().item() < 0.5 / 63 + 2e-3  # half a level, and another processor's sums


@pytest.mark.parametrize("name", ["pairs 0 to 7 not turned", "the same, the first always"])
def test_what_a_change_costs_is_what_is_stored(smol, name):
    step = {
        "pairs 0 to 7 not turned": {"turn": Rotary(D_KEY, BASE, angles=still(slice(0, 8)))},
        "the same, the first always": {"weigh": best_blocks(4, 32, first=True)},
    }[name]
    ids = token_ids_of_texts(smol.tokenizer, command.LONG)["bread"]
    ours = math.exp(price(wrong(**step)(smol.model), ids).loss)
    assert ours == pytest.approx(load_measured("changes")[name][0], **NEAR)


@pytest.mark.parametrize("name", ["none", "no mask", "KV heads dealt out"])
def test_prices_are_those_that_are_stored(smol, name):
    ids = token_ids_of_texts(smol.tokenizer, command.SHORT)["story"]
    stored = load_measured("mistakes")["prices"][name]["story"]
    assert price(MISTAKES[name](smol.model), ids)._asdict() == pytest.approx(stored, **NEAR)


def test_what_is_written_is_what_is_stored(smol):
    stored = load_measured("next_tokens")[0]
    written = greedy(smol.model, smol.tokenizer, PROMPTS[0], 4, tuple(stored["temperatures"]))
    for name in ("written", "likeliest"):
        assert written[name] == stored[name][:4]
    for ours, theirs in zip(written["shares"], stored["shares"], strict=True):
        assert_near(ours, theirs[:4])
    ids = torch.tensor([smol.tokenizer.encode(PROMPTS[0]).ids])
    cached = [smol.tokenizer.decode(token.tolist()) for token in smol.model.generate(ids, 4)]
    assert cached == stored["written"][:4]


def test_bits_are_those_that_are_stored(smol):
    ids = token_ids_of_texts(smol.tokenizer, command.LONG)["bread"]
    model = with_bits(deepcopy(smol.model).double(), 4, "rows, symmetric")
    ours = math.exp(price(model, ids).loss)
    assert ours == pytest.approx(load_measured("cache_bits")["rows, symmetric"]["4"][0], **NEAR)


@pytest.mark.parametrize("head", [(13, 8), (16, 0), (18, 6)])
def test_what_a_head_is_worth_is_what_is_stored(smol, head):
    stored = load_measured("removals")[f"{head[0]}.{head[1]}"]
    model = without_heads(smol.model, [head])
    ids = token_ids_of_texts(smol.tokenizer, command.SHORT)["bread"]
    assert price(model, ids).loss == pytest.approx(stored["loss"][0], **NEAR)
    # A token of 156 may turn over on another processor.
    assert copied(model, repeated(command.SEEDS[0])) == pytest.approx(stored["copied"], abs=0.02)


def test_every_measurement_is_stored_and_none_is_left_over():
    stored = {path.stem for path in HERE.glob("*.json")} - {"transformers"}
    assert stored == set(command.MEASUREMENTS)
    with pytest.raises(ValueError, match="name='prices' is not stored; it can be one of: cache_"):
        load_measured("prices")
