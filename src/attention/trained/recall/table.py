"""Train every mechanism on both tasks, and store in one table what the models reach."""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor

from attention.trained import weight_files
from attention.trained.recall.data import LENGTHS, LONGEST, TASKS
from attention.trained.recall.evaluation import accuracy_by_pairs, accuracy_by_place
from attention.trained.recall.mechanisms import MECHANISMS, cache_size
from attention.trained.recall.stored import TABLE
from attention.trained.recall.training import train

SEEDS = range(3)


class Trained(NamedTuple):
    """What one training run reaches; `places` only where all keys differ."""

    by_pairs: dict[int, float]
    places: Tensor | None


def train_and_measure(mechanism: str, task: str, seed: int) -> Trained:
    torch.set_num_threads(1)  # the tensors are small
    rewritten = TASKS[task]
    model = train(mechanism, seed, rewritten=rewritten)
    places = None if rewritten else accuracy_by_place(model)
    return Trained(accuracy_by_pairs(model, rewritten=rewritten), places)


def train_table(
    mechanisms: Sequence[str] = tuple(MECHANISMS), *, processes: int = 1, dry_run: bool = False
) -> None:
    """Train the models of some mechanisms, print what each reaches, and store it with the others.

    Args:
        mechanisms: some of `MECHANISMS`.
        processes: how many models are trained at a time.
        dry_run: print, and store nothing.
    """
    shares: dict[str, dict] = {task: {} for task in TASKS}
    places: dict[str, Tensor] = {}
    if TABLE.exists():
        shares, places = weight_files.metadata(TABLE), load_file(TABLE)
    print(f"numbers cached of {LONGEST} pairs; accuracy by pairs {LENGTHS}, mean of 3 seeds")
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=fresh) as pool:
        runs = {
            (name, task): [pool.submit(train_and_measure, name, task, seed) for seed in SEEDS]
            for name in mechanisms
            for task in TASKS
        }
        for (name, task), running in runs.items():
            seeds = [run.result() for run in running]
            by_pairs = {n: [round(one.by_pairs[n], 4) for one in seeds] for n in LENGTHS}
            means = " ".join(f"{sum(each) / len(each):.3f}" for each in by_pairs.values())
            cached = cache_size(name, LONGEST)
            print(f"{name:27} {task:9} {cached:5,d} cached   {means}", flush=True)
            shares[task][name] = by_pairs
            if seeds[0].places is not None:
                places[name] = torch.stack([one.places for one in seeds]).mean(0).half()
            if not dry_run:
                weight_files.write(TABLE, places, **shares)
