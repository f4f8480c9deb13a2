"""What a trained task is, and how `make train` trains its models again.

Every folder beside this module is a task, with the same names for the same things: `data.py` draws
its examples, `model.py` is the model, `training.py` has the recipe, `evaluation.py` measures, and
`stored.py` loads what is in `weights/`. The folder's `TASK` names these parts in one record.
"""

import importlib
import pkgutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

import attention.trained
from attention.trained import weight_files
from attention.trained.fitting import Recipe, build, fit


class Task(NamedTuple):
    """How a task draws its examples, and what its models, recipes and weights are.

    Attributes:
        losses: takes a model and a seed; draws a batch for each step and yields the loss on it.
        models: makes each model as it is before its first step, by the name of its file.
        recipes: how each model learns, by the same names.
        measure: measures a trained model, in numbers that JSON can hold.
        weights: the folder of the files.
        seeds: those with which each model is trained, by name; seed 0 alone for a name that is
            missing here.
        choose: takes a name and its trained models, one for each seed, and gives the index of the
            one that is stored; the first unless given.
        besides: each makes another file of the folder and prints what its models reach; with
            dry_run=True it stores nothing.
    """

    losses: Callable[[Any, int], Iterator[Tensor]]
    models: Mapping[str, Callable[[], nn.Module]]
    recipes: Mapping[str, Recipe]
    measure: Callable[[Any], dict[str, Any]]
    weights: Path
    seeds: Mapping[str, Sequence[int]] = {}
    choose: Callable[[str, Sequence[Any]], int] | None = None
    besides: Sequence[Callable[..., None]] = ()


def find_tasks() -> dict[str, Task]:
    """Find the tasks by the names of their folders."""
    rooms = [room.name for room in pkgutil.iter_modules(attention.trained.__path__) if room.ispkg]
    return {name: importlib.import_module(f"attention.trained.{name}").TASK for name in rooms}


def train(task: Task, name: str, seed: int, *, steps: int | None = None) -> nn.Module:
    """Train one model of a task.

    Args:
        task: what it learns.
        name: one of the task's models.
        seed: draws the first weights and the examples.
        steps: how many batches; the recipe's unless given.
    """
    model = build(task.models[name], seed)
    return fit(model, task.losses(model, seed), task.recipes[name], steps=steps)


def train_all(task: Task, *, dry_run: bool = False) -> None:
    """Train every model of a task, print what each seed reaches, and store one of each.

    Args:
        task: which.
        dry_run: print, and store nothing.
    """
    for name in task.models:
        models, measured = [], []
        for seed in task.seeds.get(name, (0,)):
            start = time.process_time()
            models.append(train(task, name, seed))
            seconds = time.process_time() - start
            measured.append(task.measure(models[-1]))
            print(f"{name}, seed {seed}, {seconds:.0f} s:  {line(measured[-1])}", flush=True)
        i = task.choose(name, models) if task.choose else 0
        if not dry_run:
            path = task.weights / f"{name}.safetensors"
            weight_files.write(path, weight_files.half(models[i]), **measured[i])
    for make in task.besides:
        make(dry_run=dry_run)


def line(value: Any) -> str:
    """Write what was measured in one line, with three digits."""
    if isinstance(value, Mapping):
        return "  ".join(f"{name} {line(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return f"[{' '.join(map(line, value))}]"
    return f"{value:.3f}"
