"""Every trained task keeps one contract: the same rooms, the same names, a record that trains."""

import importlib
import inspect
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from attention.trained import task as tasks
from attention.trained import weight_files
from attention.trained.ablation import without_head
from attention.trained.fitting import Recipe, build

TASKS = tasks.find_tasks()
ROOMS = {"data.py", "model.py", "training.py", "evaluation.py", "stored.py"}
MODELS = [(task, name) for task, one in TASKS.items() for name in one.models]


def room(task):
    return importlib.import_module(f"attention.trained.{task}")


def test_the_tasks_are_the_folders_with_weights():
    folders = {path.parent.name for path in Path(tasks.__file__).parent.glob("*/weights")}
    assert len(folders) == 7
    assert set(TASKS) == folders


@pytest.mark.parametrize("task", TASKS)
def test_a_task_has_the_same_rooms_as_the_others(task):
    assert {path.name for path in TASKS[task].weights.parent.glob("*.py")} >= ROOMS


@pytest.mark.parametrize("task", TASKS)
def test_a_name_means_the_same_in_every_task(task):
    """`train(which, …, seed, *, steps)`, `load(which, …)`, `accuracy(model, examples)`."""
    names = {
        each: list(inspect.signature(getattr(room(task), each)).parameters.values())
        for each in ("train", "load", "measured", "accuracy")
    }
    *which, seed = (each.name for each in names["train"] if each.kind is not each.KEYWORD_ONLY)
    assert seed == "seed"
    assert [each.name for each in names["load"]][: len(which)] == which
    assert [each.name for each in names["measured"]][: len(which)] == which
    assert "steps" in {each.name for each in names["train"] if each.kind is each.KEYWORD_ONLY}
    assert names["accuracy"][0].name == "model"


# A mechanism of recall may have no heads of its own, and the date models without attention none.
@pytest.mark.parametrize(
    ("task", "name"),
    [
        (task, name)
        for task, name in MODELS
        if task not in ("dates", "recall") or name.startswith("transformer")
    ],
)
def test_without_a_head_a_model_answers_otherwise(task, name):
    model = build(TASKS[task].models[name])
    loss = next(TASKS[task].losses(model, 1))
    for layer, attention in enumerate(model.attentions):
        head = attention.n_heads - 1
        without = without_head(model, head, layer=layer)
        assert next(TASKS[task].losses(without, 1)) != loss
        assert next(TASKS[task].losses(model, 1)) == loss, "the model is left as it is"
    with pytest.raises(ValueError, match=r"layer=\d must be from 0 to"):
        without_head(model, 0, layer=len(model.attentions))
    with pytest.raises(ValueError, match="head=-1 must be from 0 to"):
        without_head(model, -1)


@pytest.mark.parametrize(("task", "name"), MODELS)
def test_a_models_file_holds_its_weights_and_what_was_measured(task, name):
    path = TASKS[task].weights / f"{name}.safetensors"
    model = weight_files.load(TASKS[task].models[name], path)
    assert not model.training
    assert weight_files.metadata(path)
    assert TASKS[task].recipes[name].steps > 0


@pytest.mark.parametrize(("task", "name"), MODELS)
def test_training_by_name_starts_at_the_models_own_seed(task, name):
    one, same = (tasks.train(TASKS[task], name, seed=3, steps=1) for _ in range(2))
    other = tasks.train(TASKS[task], name, seed=4, steps=1)
    states = [list(each.state_dict().values()) for each in (one, same, other)]
    assert all(torch.equal(*pair) for pair in zip(*states[:2], strict=True))
    assert not all(torch.equal(*pair) for pair in zip(states[0], states[2], strict=True))


# Which of its models each task's `train` and `load` are asked for.
ONE = {
    "attention_sink": ["plain"],
    "dates": ["general"],
    "induction": [1],
    "last_speaker": ["learned"],
    "recall": ["softmax"],
    "relative_clauses": [1],
    "who_and_whom": [8, 1],
}


# Two mechanisms of recall draw at random when they are made, or have parameters of their own.
@pytest.mark.parametrize(
    ("task", "asked"),
    [*ONE.items(), ("recall", ["random features, 64"]), ("recall", ["gated delta rule"])],
)
def test_training_repeats_and_leaves_the_callers_random_numbers_alone(task, asked):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    one, same = (room(task).train(*asked, seed=5, steps=2).state_dict() for _ in range(2))
    room(task).load(*ONE[task])
    assert torch.equal(torch.rand(2), expected)
    for name, tensor in one.items():
        assert torch.equal(tensor, same[name])
        assert torch.equal(tensor, tensor.half().float()), "as they are stored"
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        room(task).train(*asked, seed=5, steps=0)


# What a part of a training comes to; after two fifths of the steps relative clauses are not half
# learned, and without training they are at nothing.
LEARNED = {
    "dates": ("accuracy(train('additive', seed=1, steps=200), held_out_dates()[:500])", 0.8),
    "induction": ("accuracy(train(2, seed=0, steps=500), new_sequences(1000))", 0.95),
    "last_speaker": ("accuracy(train('linear bias', seed=0, steps=80), new_talks(64))", 0.85),
    "recall": ("accuracy(train('softmax', seed=1, steps=250), new_pairs(64, 500))", 0.95),
    "relative_clauses": (
        "accuracy_by_kind(train(2, seed=0, steps=1000), new_clauses(500))['all']",
        0.25,
    ),
    "who_and_whom": (
        "accuracy(train(8, 2, seed=0, steps=1000), encode(new_sentences(8, 1000))).both",
        0.97,
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("task", LEARNED)
def test_it_is_learned_from_scratch(task):
    """In a process without the signature checks, which would take most of the time."""
    share, least = LEARNED[task]
    code = f"import torch; torch.set_num_threads(1); from attention.trained.{task} import *"
    code += f"; print({share})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) > least


DRAWS = {
    "attention_sink": (lambda at, rng: at.draw_sequences(9, rng), lambda at: at.new_sequences(9)),
    "induction": (lambda at, rng: at.draw_sequences(9, rng), lambda at: at.new_sequences(9)),
    "last_speaker": (lambda at, rng: at.draw_talks(9, 8, rng), lambda at: at.new_talks(8, 9)),
    "recall": (lambda at, rng: at.draw_pairs(9, 8, 2, rng), lambda at: at.new_pairs(8, 9)),
}


@pytest.mark.parametrize("task", DRAWS)
def test_the_same_seed_draws_the_same_examples(task):
    draw, new = DRAWS[task]
    one, same = (draw(room(task), torch.Generator().manual_seed(3)) for _ in range(2))
    for tensor, again in zip(one, same, strict=True):
        assert torch.equal(tensor, again)
    assert not torch.equal(new(room(task))[0], one[0])


LARGEST = {
    "attention_sink": 90_000,
    "dates": 500_000,
    "induction": 50_000,
    "last_speaker": 60_000,
    "recall": 80_000,
    "relative_clauses": 110_000,
    "who_and_whom": 300_000,
}


@pytest.mark.parametrize("task", TASKS)
def test_the_stored_files_are_small(task):
    assert sum(path.stat().st_size for path in TASKS[task].weights.iterdir()) < LARGEST[task]


def tiny_task(folder, **changed):
    """A task that learns one number."""

    def losses(model, seed):
        rng = random.Random(seed)
        while True:
            yield (model.weight.sum() - rng.random()) ** 2

    return tasks.Task(
        losses=losses,
        models={"small": lambda: nn.Linear(1, 1)},
        recipes={"small": Recipe(steps=3, learning_rate=0.01)},
        measure=lambda model: {"weight": round(model.weight.item(), 4), "by": {"all": [0.5]}},
        weights=folder,
        **changed,
    )


def test_all_models_are_trained_printed_and_stored(tmp_path, capsys):
    called = []
    task = tiny_task(
        tmp_path / "weights",
        seeds={"small": (1, 2)},
        choose=lambda name, models: 1,
        besides=[lambda *, dry_run: called.append(dry_run)],
    )
    tasks.train_all(task, dry_run=True)
    assert not (tmp_path / "weights").exists()
    tasks.train_all(task)
    assert called == [True, False]
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in printed] == 4 * ["small"]
    assert printed[3].endswith("by all [0.500]")
    path = tmp_path / "weights" / "small.safetensors"
    stored = weight_files.load(task.models["small"], path)
    chosen = tasks.train(task, "small", seed=2)
    assert torch.equal(stored.weight, chosen.weight)
    assert weight_files.metadata(path) == task.measure(chosen)


def test_without_a_choice_the_first_seed_is_stored(tmp_path):
    task = tiny_task(tmp_path, seeds={"small": (5, 6)})
    tasks.train_all(task)
    stored = weight_files.load(task.models["small"], tmp_path / "small.safetensors")
    assert torch.equal(stored.weight, tasks.train(task, "small", seed=5).weight)
