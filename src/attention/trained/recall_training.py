"""Trains the models of `recall`, and stores what they come to.

`python -m attention.trained.recall_training [MECHANISM …] [--processes 2] [--dry-run]` trains some
of them or all, `make train` all of them among the others.
"""

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor

from attention.trained import weight_files
from attention.trained.recall import (
    LENGTHS,
    LONGEST,
    MECHANISMS,
    SEEDS,
    TASKS,
    WEIGHTS,
    accuracy_by_pairs,
    accuracy_by_place,
    numbers_kept,
    require_mechanism,
    table,
    train,
)


class Trained(NamedTuple):
    """What one training comes to; places and weights where they are stored."""

    by_pairs: dict[int, float]
    places: Tensor | None
    weights: dict[str, Tensor] | None


def train_and_measure(mechanism: str, task: str, seed: int) -> Trained:
    torch.set_num_threads(1)  # the tensors are small
    rewritten = TASKS[task]
    model = train(mechanism, seed, rewritten=rewritten)
    places = None if rewritten else accuracy_by_place(model)
    is_stored = (mechanism, task, seed) == ("softmax", "once", SEEDS[0])
    weights = weight_files.half(model) if is_stored else None
    return Trained(accuracy_by_pairs(model, rewritten=rewritten), places, weights)


def train_all(mechanisms: list[str], *, processes: int = 1, dry_run: bool = False) -> None:
    """Train the models of some mechanisms, print what each comes to, and store it with the others.

    Args:
        mechanisms: some of `MECHANISMS`.
        processes: how many models are trained at a time.
        dry_run: print, and store nothing.
    """
    told: dict[str, dict] = {task: {} for task in TASKS}
    places: dict[str, Tensor] = {}
    if table().exists():
        told, places = weight_files.told(table()), load_file(table())
    print(f"recall: numbers kept of {LONGEST} pairs; accuracy by pairs {LENGTHS}, mean of 3 seeds")
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
            means = " ".join(f"{sum(shares) / len(shares):.3f}" for shares in by_pairs.values())
            kept = numbers_kept(name, LONGEST)
            print(f"{name:27} {task:9} {kept:5,d} kept   {means}", flush=True)
            told[task][name] = by_pairs
            if seeds[0].places is not None:
                places[name] = torch.stack([one.places for one in seeds]).mean(0).half()
            if not dry_run:
                weight_files.write(table(), places, **told)
                if seeds[0].weights is not None:
                    weight_files.write(WEIGHTS / "softmax.safetensors", seeds[0].weights)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the models that recall pairs anew.")
    parser.add_argument("mechanisms", nargs="*", help="all of them unless named")
    parser.add_argument("--processes", type=int, default=2, help="how many at a time")
    parser.add_argument("--dry-run", action="store_true", help="print, and store nothing")
    options = parser.parse_args()
    for name in options.mechanisms:
        require_mechanism(name)
    train_all(
        options.mechanisms or list(MECHANISMS),
        processes=options.processes,
        dry_run=options.dry_run,
    )


if __name__ == "__main__":
    main()
