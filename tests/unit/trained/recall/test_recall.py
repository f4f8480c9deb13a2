"""Recall: its pairs, each model against its formula, and what the table says against theory."""

import math
import re
from collections import Counter
from functools import partial

import pytest
import torch

from attention import (
    KeyValueCache,
    LatentAttention,
    Mechanism,
    MultiHeadAttention,
    gated_delta_rule,
    linear_attention_step,
    tiled_attention,
)
from attention.trained import recall
from attention.trained.fitting import build
from attention.trained.recall import (
    LENGTHS,
    LONGEST,
    MECHANISMS,
    N_VALUES,
    Pairs,
    RecallModel,
    accuracy,
    accuracy_by_pairs,
    accuracy_by_place,
    cache_size,
    draw_pairs,
    measured_places,
    new_pairs,
    train,
)
from attention.trained.recall.data import QUESTIONS
from tests.unit.refusals import refusals

CHANCE = 1 / N_VALUES
# Which keys a question or a pair at place i sees.
SEES = {
    "window 8": lambda i, j: i - j <= 8,
    "window 16": lambda i, j: i - j <= 16,
    "window 12, 4 sinks": lambda i, j: i - j <= 12 or j < 4,
    "strided 8": lambda i, j: i - j <= 8 or (i - j) % 8 == 0,
}
ALL_PAIRS = ("softmax", "grouped-query, 1 key head", "keys for values", "latent, 8 numbers")
DECAYS = {"decay": (31 / 32, 63 / 64), "fast decay": (7 / 8, 15 / 16)}


def generator(seed):
    return torch.Generator().manual_seed(seed)


def mean(shares):
    return sum(shares) / len(shares)


@pytest.mark.parametrize(("n_pairs", "rewritten"), [(9, False), (64, False), (9, True), (64, True)])
def test_the_answer_is_the_last_value_that_was_written_beside_the_key(n_pairs, rewritten):
    pairs = draw_pairs(300, n_pairs, 5, generator(1), rewritten=rewritten)
    turned_round = 0
    for keys, values, asked, answers in zip(*(x.tolist() for x in pairs), strict=True):
        last = dict(zip(keys, values, strict=True))
        assert answers == [last[key] for key in asked]
        times = Counter(Counter(keys).values())
        assert times == (Counter({2: n_pairs // 2, 1: n_pairs % 2}) if rewritten else {1: n_pairs})
        assert len(set(zip(keys, values, strict=True))) == n_pairs, "never the same value again"
        assert set(keys) <= set(range(64)) and set(values) <= set(range(16))
        turned_round += keys[0] == keys[1]
    assert not rewritten or turned_round > 0, "twice in a row is possible"
    assert {tuple(shape) for shape in (pairs.asked.shape, pairs.answers.shape)} == {(300, 5)}


def test_every_place_is_asked_about_and_every_value_answers():
    keys, _, asked, answers = draw_pairs(4000, 8, 1, generator(2))
    place = (keys == asked).int().argmax(1)
    assert place.bincount(minlength=8).min() > 400
    assert answers.flatten().bincount(minlength=16).min() > 180


def test_a_key_that_is_written_twice_is_asked_as_often_for_any_distance():
    keys, values, asked, answers = draw_pairs(4000, 4, 1, generator(3), rewritten=True)
    places = (keys == asked).nonzero()[:, 1].view(-1, 2)
    assert torch.equal(values.gather(1, places[:, 1:]), answers)
    assert (places[:, 1] - places[:, 0]).bincount().tolist() == pytest.approx(
        [0, 2000, 1333, 667], abs=120
    )


def rows(model, pairs):
    x = torch.cat(
        (
            model.key.weight[pairs.keys] + model.value.weight[pairs.values],
            model.key.weight[pairs.asked],
        ),
        dim=1,
    )
    return x + model.positions.table[: x.shape[1]] if hasattr(model.positions, "table") else x


def by_formula(name, layer, x):
    """The layer's output in a mechanism's own words, head by head."""
    n, d_key = x.shape[1], layer.d_model // layer.n_heads
    place = torch.arange(n)
    total = 0
    for head in range(layer.n_heads):
        part = slice(head * d_key, (head + 1) * d_key)
        q = x @ layer.w_q.weight[part].T
        if name.startswith("grouped"):
            k, v = x @ layer.w_k.weight.T, x @ layer.w_v.weight.T
        elif name == "keys for values":
            k = v = x @ layer.w_k.weight[part].T
        elif name.startswith("latent"):
            latent = x @ layer.w_down.weight.T
            k, v = latent @ layer.w_k.weight[part].T, latent @ layer.w_v.weight[part].T
        else:
            k, v = x @ layer.w_k.weight[part].T, x @ layer.w_v.weight[part].T
        if "delta" in name:
            attended = by_steps(name, layer, head, x, q, k, v)
        elif name.startswith("Linformer"):
            scores = q @ (layer.attend.E[:, :n] @ k).mT / math.sqrt(d_key)
            attended = scores.softmax(-1) @ (layer.attend.F[:, :n] @ v)
        elif name.startswith("compressed"):
            attended = by_entries(int(re.search(r"by (\d+)", name)[1]), layer.attend, q, k, v)
        else:
            if name == "linear":
                plus = [torch.where(y > 0, y + 1, y.exp()) for y in (q, k)]
                weights = (plus[0] @ plus[1].mT).tril()
                weights = weights / weights.sum(-1, keepdim=True)
            elif name == "sum after SiLU":
                q, k, v = (y * y.sigmoid() for y in (q, k, v))
                q, k = (y / (y.square().sum(-1, keepdim=True) + 1e-6).sqrt() for y in (q, k))
                weights = (q @ k.mT).tril()
            elif name in DECAYS:
                alpha = DECAYS[name][head]
                weights = (q @ k.mT * alpha ** (place[:, None] - place).clamp(min=0)).tril()
            else:
                sees = SEES.get(name, lambda i, j: True)
                seen = torch.tensor([[j <= i and sees(i, j) for j in range(n)] for i in range(n)])
                scores = q @ k.mT / math.sqrt(d_key)
                weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
            attended = weights @ v
        total = total + attended @ layer.w_o.weight[:, part].T
    return total


def by_entries(block, attend, q, k, v):
    """Each query among the last eight, itself, and a weighted sum of each block that is over."""
    outputs = []
    for i in range(q.shape[1]):
        near = slice(max(0, i - 8), i + 1)
        keys, values = [k[:, near]], [v[:, near]]
        for end in range(block, i + 2, block):
            tokens = slice(end - block, end)
            gates = k[:, tokens] @ attend.w_gate.weight.T + attend.place
            share = gates.exp() / gates.exp().sum(1, keepdim=True)
            keys.append((share * k[:, tokens]).sum(1, keepdim=True))
            values.append((share * v[:, tokens]).sum(1, keepdim=True))
        scores = torch.cat(keys, 1) @ q[:, i, :, None] / math.sqrt(q.shape[-1])
        outputs.append((scores.softmax(1) * torch.cat(values, 1)).sum(1))
    return torch.stack(outputs, 1)


def by_steps(name, layer, head, x, q, k, v):
    q, k, v = (y * y.sigmoid() for y in (q, k, v))
    q, k = (y / (y.square().sum(-1, keepdim=True) + 1e-6).sqrt() for y in (q, k))
    beta = (x @ layer.w_beta.weight[head]).sigmoid()
    alpha = torch.ones_like(beta)
    if name.startswith("gated"):
        gate = x @ layer.w_alpha.weight[head] + layer.w_alpha.bias[head]
        alpha = torch.exp(-layer.log_rate[head].exp() * (1 + gate.exp()).log())
    state, outputs = x.new_zeros(len(x), k.shape[-1], v.shape[-1]), []
    for i in range(x.shape[1]):
        state = alpha[:, i, None, None] * state
        error = v[:, i] - torch.einsum("bkv,bk->bv", state, k[:, i])
        state = state + beta[:, i, None, None] * k[:, i, :, None] * error[:, None]
        outputs.append(torch.einsum("bkv,bk->bv", state, q[:, i]))
    return torch.stack(outputs, 1)


EXACT = [
    name
    for name in MECHANISMS
    if not name.startswith(("LSH", "Performer", "random"))  # which draw at random
]


@pytest.mark.parametrize("n_pairs", [5, 33])
@pytest.mark.parametrize("name", EXACT)
def test_a_model_is_its_formula(name, n_pairs):
    model = build(MECHANISMS[name].make, 3).double()
    pairs = draw_pairs(3, n_pairs, 4, generator(5))
    x = rows(model, pairs)
    expected = (x + by_formula(name, model.attention, x))[:, n_pairs:] @ model.to_value.weight.T
    logits = model(pairs.keys, pairs.values, pairs.asked)
    torch.testing.assert_close(logits, expected)
    trained = [p for p in model.parameters() if p.requires_grad]
    gradients, wanted = (
        torch.autograd.grad(y.square().mean(), trained, allow_unused=True, materialize_grads=True)
        for y in (logits, expected)
    )
    torch.testing.assert_close(gradients, wanted)


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_answer_depends_on_what_comes_later(name):
    model = build(MECHANISMS[name].make, 3).double()
    keys, values, asked, _ = draw_pairs(4, 40, QUESTIONS, generator(6))
    other = torch.cat((asked[:, :3], (asked[:, 3:] + 1) % 64), dim=1)
    one, two = (model(keys, values, questions)[:, :3] for questions in (asked, other))
    assert torch.allclose(one, two) == (not name.startswith("Linformer"))


def test_all_models_have_as_many_parameters():
    for name, mechanism in MECHANISMS.items():
        count = sum(p.numel() for p in mechanism.make().parameters() if p.requires_grad)
        assert abs(count / 7168 - 1) < 0.05, name


def test_the_cache_size_is_that_of_a_cache_or_a_state():
    def held(layer):
        return layer.new_cache(1, LONGEST).nbytes // 4

    assert cache_size("softmax", LONGEST) == KeyValueCache(1, 2, LONGEST, 16).nbytes // 4
    grouped = MultiHeadAttention(36, 2, n_kv_heads=1)
    assert cache_size("grouped-query, 1 key head", LONGEST) == held(grouped)
    assert 2 * cache_size("keys for values", LONGEST) == held(MultiHeadAttention(36, 2))
    assert cache_size("latent, 8 numbers", LONGEST) == held(LatentAttention(36, 2, 8))
    token = torch.ones(1, 2, 1, 16)
    assert cache_size("linear", LONGEST) == linear_attention_step(token, token, token)[1].numel()
    state = gated_delta_rule(token, token, token, torch.ones(1, 2, 1))[1]
    for name in ("sum after SiLU", "decay", "fast decay", "delta rule", "gated delta rule"):
        assert cache_size(name, 4) == cache_size(name, LONGEST) == state.numel()
    assert [cache_size("window 12, 4 sinks", n) for n in (4, 64)] == [4 * 64, 16 * 64]
    assert [cache_size("strided 8", n) for n in (4, 64)] == [4 * 64, 64 * 64]
    features = cache_size("Performer, 64 features", 5), cache_size("random features, 64", 5)
    assert features == (2 * 64 * 17,) * 2


def test_one_line_puts_another_mechanism_into_the_trained_model():
    model, pairs = recall.load(), new_pairs(64, 20)
    before = model(*pairs[:3])
    model.attention.attend = Mechanism(partial(tiled_attention, causal=True))
    torch.testing.assert_close(model(*pairs[:3]), before)


def test_the_stored_model_does_what_training_measured():
    for n, share in accuracy_by_pairs(recall.load()).items():
        assert share == pytest.approx(recall.measured("softmax")[n][0], abs=0.002)


def test_accuracy_by_place_asks_for_every_pair():
    """By a model that knows the values at some places, and answers 0 elsewhere."""
    known = torch.arange(LONGEST) % 3 == 1

    def knows(keys, values, asked):
        assert asked.shape == (40, 1)
        place = (keys == asked).int().argmax(1, keepdim=True)
        said = values.gather(1, place) * known[place]
        return torch.nn.functional.one_hot(said, N_VALUES)

    model = RecallModel(MultiHeadAttention(4, 2))
    model.forward = knows
    places = accuracy_by_place(model, 40)
    assert (places[known] == 1).all() and places[~known].mean() == pytest.approx(CHANCE, abs=0.03)


@pytest.mark.parametrize("rewritten", [False, True])
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_table_has_every_mechanism_by_pairs_and_seed(name, rewritten):
    measured = recall.measured(name, rewritten=rewritten)
    assert tuple(measured) == LENGTHS
    assert all(len(shares) == 3 for shares in measured.values())
    assert all(0 <= share <= 1 for shares in measured.values() for share in shares)
    assert measured_places(name).shape == (LONGEST,)


@pytest.mark.parametrize("name", SEES)
def test_what_a_pattern_hides_is_guessed_and_what_it_shows_is_known(name):
    for n, shares in recall.measured(name).items():
        shown = mean([SEES[name](n, j) for j in range(n)])
        for share in shares:
            assert share == pytest.approx(shown + (1 - shown) * CHANCE, abs=0.035)
    shown = torch.tensor([SEES[name](LONGEST, j) for j in range(LONGEST)])
    places = measured_places(name)
    assert places[shown].min() > 0.97
    assert places[~shown].max() < 0.16 and places[~shown].mean() == pytest.approx(CHANCE, abs=0.02)


@pytest.mark.parametrize("name", ALL_PAIRS)
def test_who_keeps_all_pairs_knows_them_all_but_not_which_of_two_came_later(name):
    for n, shares in recall.measured(name).items():
        assert min(shares) > 0.99
        assert 0.42 < mean(recall.measured(name, rewritten=True)[n]) < 0.54
    assert min(recall.measured("softmax, learned positions", rewritten=True)[64]) > 0.8


def test_a_sum_of_fixed_size_runs_full_and_the_delta_rule_rewrites_it():
    for name in ("linear", "delta rule"):
        shares = [mean(each) for each in recall.measured(name).values()]
        assert shares[0] > 0.94 and 0.4 < shares[-1] < 0.9
        assert shares == sorted(shares, reverse=True)
    sum_, delta = (recall.measured(name, rewritten=True) for name in ("linear", "delta rule"))
    for n in (4, 8, 16, 32):
        assert max(sum_[n]) < 0.6 < 0.8 < min(delta[n])


def test_a_sum_after_silu_holds_more_than_one_with_elu_and_knows_no_order():
    """The delta layer's SiLU helps without its rule."""
    silu, elu = recall.measured("sum after SiLU"), recall.measured("linear")
    assert min(silu[64]) > 0.85 > 0.8 > max(elu[64])
    assert max(recall.measured("sum after SiLU", rewritten=True)[32]) < 0.6


def test_decay_forgets_by_age():
    for name in DECAYS:
        places = measured_places(name).view(4, 16).mean(1)
        assert places.tolist() == sorted(places.tolist())
    assert measured_places("fast decay")[:16].mean() < 0.3 < measured_places("decay")[:16].mean()


@pytest.mark.slow
def test_training_anew_comes_to_what_the_table_says():
    model = train("linear", seed=2, rewritten=True)
    for n, shares in recall.measured("linear", rewritten=True).items():
        share = accuracy(model, new_pairs(n, rewritten=True))
        assert share == pytest.approx(shares[2], abs=0.05)


def test_an_answer_is_counted_once_for_each_question():
    model = RecallModel(MultiHeadAttention(4, 2))
    model.forward = lambda keys, values, asked: torch.eye(16)[asked % 16]
    asked, answers = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 5]])
    assert accuracy(model, Pairs(asked, asked, asked, answers)) == 0.75


test_bad_input = refusals(
    [
        (lambda: train("hashing", 0), "there is no mechanism 'hashing'; it can be one of: softmax"),
        (lambda: cache_size("hashing", 4), "there is no mechanism 'hashing'"),
        (lambda: recall.measured("hashing"), "there is no mechanism 'hashing'"),
        (lambda: measured_places("hashing"), "there is no mechanism 'hashing'"),
        (lambda: cache_size("linear", 0), "n_pairs must be at least 1, got 0"),
        (lambda: draw_pairs(0, 4, 1, generator(0)), "count must be at least 1, got 0"),
        (lambda: draw_pairs(1, 0, 1, generator(0)), "n_pairs must be at least 1, got 0"),
        (lambda: draw_pairs(1, 4, 0, generator(0)), "n_questions must be at least 1, got 0"),
        (lambda: new_pairs(65), "n_pairs=65 is more than the 64 keys that there are"),
    ]
)
