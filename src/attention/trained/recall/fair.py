"""The fair comparison: every mechanism at its best learning rate, in stacks otherwise alike.

The criterion was written before the run. **The delta rule recalls more of 64 pairs than the sums
("sum" and "linear"): the mean of five seeds is larger, by more than the seeds spread (the larger of
the two standard deviations).** It is judged in each setting separately.

What is trained: two layers of each mechanism with a pair as one token, as in the other table of
recall; the same with key and value as two tokens, the form in which the task was published, where a
short convolution in every layer can join them; the same with a pair as one token, where every key
is written twice; and four layers half as wide, of which none, one, two or all attend with softmax
and the others use the gated delta rule.

Each is trained at three learning rates with two seeds, and at a fourth rate where the best of the
three is at either end. These models are measured on sequences of a draw of their own. At the rate
that did best there, on average over seeds and numbers of pairs, five other seeds are trained, and
measured on the sequences of `new_pairs`. No model and no sequence has a part in both steps.

`python -m attention.trained.recall --fair --processes 16` trains them all, in about two hours of
one processor's time. What is measured is written after every model, so that a run that was cut
short continues where it stopped.
"""

import json
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from attention.trained.fitting import Recipe, build, fit
from attention.trained.recall.data import LENGTHS, Pairs, draw_pairs, new_pairs
from attention.trained.recall.evaluation import accuracy
from attention.trained.recall.mechanisms import D_MODEL
from attention.trained.recall.model import RecallModel
from attention.trained.recall.stack import LAYERS, Stack, TokensApart
from attention.trained.recall.training import losses

STORED = Path(__file__).parent / "weights" / "fair.json"
RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
FIRST_RATES = RATES[1:4]  # the outer ones only where the best of these is at an end
SEARCH_SEEDS, SEEDS = (100, 101), (0, 1, 2, 3, 4)
STEPS, LARGEST_GRADIENT = 800, 1.0
BATCH, QUESTIONS = 32, 16  # half as many sequences as `train` has, twice as many questions
SEARCH_COUNT = 500  # sequences of each number of pairs that a rate is chosen by


class Setting(NamedTuple):
    """What is trained.

    Attributes:
        layers: what attends in each layer, from the lowest; some of `LAYERS`.
        d_model: the width of a row, of 2 heads.
        convolution: whether every layer has a short convolution.
        apart: whether a key and its value are two tokens.
        rewritten: whether each key is written twice.
    """

    layers: tuple[str, ...]
    d_model: int = D_MODEL
    convolution: bool = False
    apart: bool = False
    rewritten: bool = False


HYBRIDS = {  # by how many of four layers attend with softmax
    0: ("gated delta rule",) * 4,
    1: ("gated delta rule",) * 3 + ("softmax",),
    2: ("gated delta rule", "softmax") * 2,
    4: ("softmax",) * 4,
}
GROUPS = {  # trained in this order, so that a run that is cut short lacks the last
    "one token": [Setting((name,) * 2) for name in LAYERS],
    "hybrids": [Setting(layers, d_model=D_MODEL // 2) for layers in HYBRIDS.values()],
    "two tokens": [Setting((name,) * 2, convolution=True, apart=True) for name in LAYERS],
    "written twice": [Setting((name,) * 2, rewritten=True) for name in LAYERS],
}

Job = tuple[Setting, float, int]  # a learning rate and a seed


class Run(NamedTuple):
    """One model that was trained.

    Attributes:
        setting: what it is.
        rate: the largest value of the learning rate.
        seed: one of `SEARCH_SEEDS`, or one of `SEEDS` once the rate had been chosen.
        accuracy: the share of right answers for each of `LENGTHS`.
    """

    setting: Setting
    rate: float
    seed: int
    accuracy: dict[int, float]


def search_pairs(n_pairs: int, *, rewritten: bool = False) -> Pairs:
    """The sequences that a rate is chosen by: a different draw from that of `new_pairs`."""
    generator = torch.Generator().manual_seed(2 * 10**6 + n_pairs)
    return draw_pairs(SEARCH_COUNT, n_pairs, 1, generator, rewritten=rewritten)


def train_fair(setting: Setting, rate: float, seed: int, *, steps: int = STEPS) -> RecallModel:
    """Train one model of the comparison."""
    kind = TokensApart if setting.apart else RecallModel
    layers, d_model, convolution, _, rewritten = setting
    model = build(lambda: kind(Stack(layers, d_model=d_model, convolution=convolution)), seed)
    batches = losses(model, seed, rewritten=rewritten, batch=BATCH, questions=QUESTIONS)
    return fit(model, batches, Recipe(steps, rate, LARGEST_GRADIENT))


def train_and_measure(setting: Setting, rate: float, seed: int, steps: int) -> Run:
    torch.set_num_threads(1)  # the tensors are small
    model = train_fair(setting, rate, seed, steps=steps)
    draw = search_pairs if seed in SEARCH_SEEDS else new_pairs
    draw = partial(draw, rewritten=setting.rewritten)
    return Run(setting, rate, seed, {n: round(accuracy(model, draw(n)), 4) for n in LENGTHS})


def best_rate(runs: list[Run], setting: Setting) -> float:
    """The rate that did best in the search, on average over its seeds and the numbers of pairs."""
    shares: dict[float, list[float]] = {}
    for run in runs:
        if run.setting == setting and run.seed in SEARCH_SEEDS:
            shares.setdefault(run.rate, []).extend(run.accuracy.values())
    return max(shares, key=lambda rate: sum(shares[rate]) / len(shares[rate]))


def shares_by_seed(runs: list[Run], setting: Setting) -> dict[int, list[float]]:
    """What five seeds reached at the chosen rate, for each number of pairs.

    Example:
        >>> from attention.trained.recall import fair
        >>> runs = fair.read_runs(fair.STORED)
        >>> delta_rule = fair.Setting(("delta rule",) * 2)
        >>> len(fair.shares_by_seed(runs, delta_rule)[64])
        5
    """
    seeds = [run.accuracy for run in runs if run.setting == setting and run.seed in SEEDS]
    return {n: [accuracy[n] for accuracy in seeds] for n in LENGTHS}


def jobs_left(runs: list[Run]) -> list[Job]:
    """What is still to be trained, as far as it is known, in the order in which to train it.

    The order goes group by group. In a group the five seeds of a setting come as soon as its rate
    is chosen, and then the search; in both, the stacks that take longest come first.
    """
    done = {run[:3] for run in runs}
    left = []
    for group, settings in enumerate(GROUPS.values()):
        for setting in settings:
            search = missing(setting, FIRST_RATES, SEARCH_SEEDS, done)
            if not search:  # where the best of three is at an end, one rate beyond
                low, _, high = FIRST_RATES
                beyond = {low: RATES[:1], high: RATES[-1:]}.get(best_rate(runs, setting), ())
                search = missing(setting, beyond, SEARCH_SEEDS, done)
            seeds = [] if search else missing(setting, [best_rate(runs, setting)], SEEDS, done)
            left += [(group, False, -milliseconds(setting), job) for job in seeds]
            left += [(group, True, -milliseconds(setting), job) for job in search]
    return [job for *_, job in sorted(left)]


def missing(
    setting: Setting, rates: Sequence[float], seeds: Sequence[int], done: set[Job]
) -> list[Job]:
    jobs = [(setting, rate, seed) for rate in rates for seed in seeds]
    return [job for job in jobs if job not in done]


def milliseconds(setting: Setting) -> float:
    """Roughly how long a step takes, in milliseconds."""
    each = {"softmax": 4, "linear": 8, "sum": 6, "gated decay": 10, "delta rule": 12}
    tokens = 1.7 if setting.apart else 1.0
    return tokens * sum(each.get(name, 17) for name in setting.layers)


def compare(path: Path, *, processes: int = 1, steps: int = STEPS) -> None:
    """Train all models of the comparison that the file at path does not hold yet.

    Args:
        path: where what is measured is written, as JSON.
        processes: how many models are trained at a time.
        steps: how many batches each is trained on.
    """
    runs = read_runs(path) if path.exists() else []
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=fresh) as pool:
        running: dict[Future[Run], Job] = {}
        while True:
            waiting = [job for job in jobs_left(runs) if job not in running.values()]
            for job in waiting[: processes - len(running)]:
                running[pool.submit(train_and_measure, *job, steps)] = job
            if not running:
                return
            for ready in wait(running, return_when=FIRST_COMPLETED).done:
                del running[ready]
                run = ready.result()
                runs.append(run)
                write_runs(path, runs, steps)
                shares = " ".join(f"{share:.3f}" for share in run.accuracy.values())
                print(f"{len(runs):3}  {shares}  {run.rate} {run.seed} {run.setting}", flush=True)


def write_runs(path: Path, runs: list[Run], steps: int) -> None:
    """Write runs as JSON, one on each line; the file is complete at any time.

    A setting's defaults are left out, and shares are in the order of `LENGTHS`. The file names
    every version of torch that wrote to it.
    """
    compact = partial(json.dumps, separators=(",", ":"))
    default = Setting._field_defaults
    lines = [
        compact(
            {k: v for k, v in setting._asdict().items() if v != default.get(k)}
            | {"rate": rate, "seed": seed, "accuracy": list(shares.values())}
        )
        for setting, rate, seed, shares in sorted(runs, key=lambda run: run[:3])
    ]
    before = json.loads(path.read_text("utf-8"))["recipe"]["torch"] if path.exists() else []
    told = compact({"steps": steps, "torch": sorted({*before, str(torch.__version__)})})
    beside = path.with_suffix(".part")
    beside.write_text(f'{{"recipe": {told},\n"runs": [\n' + ",\n".join(lines) + "\n]}\n", "utf-8")
    os.replace(beside, path)


def read_runs(path: Path) -> list[Run]:
    """Read runs as they were written."""
    runs = []
    for told in json.loads(path.read_text("utf-8"))["runs"]:
        rate, seed, shares = (told.pop(name) for name in ("rate", "seed", "accuracy"))
        setting = Setting(**{**told, "layers": tuple(told["layers"])})
        runs.append(Run(setting, rate, seed, dict(zip(LENGTHS, shares, strict=True))))
    return runs
