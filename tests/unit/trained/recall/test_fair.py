"""The fair comparison: which models are trained, in which order, and what they reached."""

import json

import pytest
import torch

from attention.trained.recall import LENGTHS, data, fair, new_pairs, training
from attention.trained.recall.fair import GROUPS, RATES, SEARCH_SEEDS, SEEDS, Run, Setting
from attention.trained.recall.stack import TokensApart

SETTINGS = [setting for settings in GROUPS.values() for setting in settings]


def train_all(score):
    """Every run in the order of `jobs_left`; score says what a setting comes to at a rate."""
    runs = []
    while jobs := fair.jobs_left(runs):
        setting, rate, seed = jobs[0]
        runs.append(Run(setting, rate, seed, dict.fromkeys(LENGTHS, score(setting, rate))))
    return runs


@pytest.mark.parametrize("best", RATES)
def test_five_seeds_are_trained_at_the_rate_that_did_best(best):
    runs = train_all(lambda _, rate: 1 - abs(RATES.index(rate) - RATES.index(best)) / 10)
    assert len({run[:3] for run in runs}) == len(runs), "none twice"
    for setting in SETTINGS:
        own = [run for run in runs if run.setting == setting]
        searched = {run.rate for run in own if run.seed in SEARCH_SEEDS}
        outer = {0.001} if best <= 0.003 else {0.1} if best >= 0.03 else set()
        assert searched == {*RATES[1:4]} | outer, "an outer rate only where it may be the best"
        assert {(run.rate, run.seed) for run in own if run.seed in SEEDS} == {
            (best, seed) for seed in SEEDS
        }
        assert fair.best_rate(runs, setting) == best
        assert fair.shares_by_seed(runs, setting) == {n: [1.0] * 5 for n in LENGTHS}


def test_a_group_is_complete_before_the_next_begins():
    runs = train_all(lambda *_: 0.5)
    groups = [
        next(i for i, each in enumerate(GROUPS.values()) if run.setting in each) for run in runs
    ]
    assert groups == sorted(groups)


@pytest.mark.parametrize("rewritten", [False, True])
def test_no_sequence_has_a_part_in_search_and_report(rewritten):
    for n in (16, 64):  # of 4 keys in a row some come twice by chance
        searched, reported = (
            draw(n, rewritten=rewritten) for draw in (fair.search_pairs, new_pairs)
        )
        searched, reported = (
            {tuple(row) for row in each.keys.tolist()} for each in (searched, reported)
        )
        assert not searched & reported
    assert not set(SEARCH_SEEDS) & set(SEEDS)


def test_what_is_written_is_read(tmp_path):
    few, many = (dict(zip(LENGTHS, s, strict=True)) for s in ((1, 0.5, 0.25, 0, 0), (1.0,) * 5))
    runs = [
        Run(Setting(("sum", "softmax"), 16, True, True), 0.003, 1, few),
        Run(Setting(("delta rule",) * 2), 0.01, 100, many),
    ]
    runs.append(runs[1]._replace(setting=Setting(("delta rule",) * 2, rewritten=True)))
    path = tmp_path / "runs.json"
    fair.write_runs(path, runs, 3)
    assert sorted(fair.read_runs(path)) == sorted(runs)
    assert [each.name for each in tmp_path.iterdir()] == ["runs.json"]
    path.write_text(path.read_text("utf-8").replace(torch.__version__, "1.0"), "utf-8")
    fair.write_runs(path, runs, 3)
    recipe = json.loads(path.read_text("utf-8"))["recipe"]
    assert recipe == {"steps": 3, "torch": ["1.0", torch.__version__]}


def test_a_model_is_made_as_its_setting_says():
    setting = Setting(("sum", "softmax"), 16, convolution=True, apart=True)
    model = fair.train_fair(setting, 0.01, 0, steps=1)
    assert isinstance(model, TokensApart)
    assert model.key.weight.shape == (64, 16)
    assert [type(each).__name__ for each in model.attention.convolutions] == [
        "ShortConvolution"
    ] * 2
    again = fair.train_fair(setting, 0.01, 0, steps=1)
    other = fair.train_fair(setting, 0.01, 1, steps=1)
    assert torch.equal(model.key.weight, again.key.weight)
    assert not torch.equal(model.key.weight, other.key.weight)


@pytest.mark.parametrize("seed", [SEARCH_SEEDS[0], SEEDS[0]])
def test_a_model_of_keys_written_twice_is_trained_and_measured_on_them(monkeypatch, seed):
    drawn = []

    def draw_pairs(*arguments, rewritten=False):
        drawn.append(rewritten)
        return data.draw_pairs(*arguments, rewritten=rewritten)

    monkeypatch.setattr(training, "draw_pairs", draw_pairs)
    monkeypatch.setattr(fair, "draw_pairs", draw_pairs)
    monkeypatch.setattr(fair, "new_pairs", lambda n, rewritten: draw(n, rewritten=rewritten))
    draw = fair.search_pairs
    for rewritten in (False, True):
        fair.train_and_measure(Setting(("sum",), rewritten=rewritten), 0.01, seed, 1)
        assert drawn == [rewritten] * (1 + len(LENGTHS))
        drawn.clear()


STORED = fair.read_runs(fair.STORED)


def mean(shares):
    return sum(shares) / len(shares)


def test_the_stored_comparison_is_complete():
    assert fair.jobs_left(STORED) == []
    for setting in SETTINGS:
        by_pairs = fair.shares_by_seed(STORED, setting)
        assert list(by_pairs) == list(LENGTHS)
        assert {len(seeds) for seeds in by_pairs.values()} == {5}
        assert all(0 <= share <= 1 for seeds in by_pairs.values() for share in seeds)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_no_best_rate_is_at_the_end_of_the_search(setting):
    assert min(RATES) < fair.best_rate(STORED, setting) < max(RATES)


def at_64(group):
    return {
        setting.layers[0]: fair.shares_by_seed(STORED, setting)[64] for setting in GROUPS[group]
    }


def test_what_the_comparison_says_of_its_criterion():
    joined, apart, twice = (at_64(group) for group in ("one token", "two tokens", "written twice"))
    spread = {name: torch.tensor(seeds).std() for name, seeds in apart.items()}
    gap = mean(apart["delta rule"]) - mean(apart["sum"])
    assert gap > max(spread["delta rule"], spread["sum"]), "holds against a sum in two tokens"
    gap = mean(apart["delta rule"]) - mean(apart["linear"])
    assert 0 < gap < spread["delta rule"], "but not against linear attention"
    assert abs(mean(joined["delta rule"]) - mean(joined["sum"])) < 0.01, "and not in one"
    assert mean(joined["delta rule"]) > mean(joined["linear"]) + 0.2
    assert min(apart["delta rule"]) < min(apart["sum"]) + 0.1, "one seed of the rule fell behind"
    assert sum(share > 0.87 for share in apart["delta rule"]) == 4
    assert mean(joined["softmax"]) > 0.99
    gap = mean(twice["delta rule"]) - mean(twice["sum"])
    assert gap > torch.tensor(twice["delta rule"]).std(), "written twice, it holds against a sum"
    assert mean(twice["linear"]) > mean(twice["delta rule"]), "but not against linear attention"
    assert min(twice["softmax"]) > 0.99, "a second layer knows which came later"


def test_one_layer_of_softmax_brings_recall_back():
    by_layers = dict(zip(fair.HYBRIDS, GROUPS["hybrids"], strict=True))
    right = {n: mean(fair.shares_by_seed(STORED, each)[64]) for n, each in by_layers.items()}
    assert right[0] < 0.35 and min(right[n] for n in (1, 2, 4)) > 0.99
