"""What the divisor of the scores does to a model in training, at d_key 64.

A head of the book's model has four numbers, so its divisor is 2. Here a head has 64, as in Vaswani
et al. 2017, so that undivided scores are eight times as far apart. Each run is trained with several
seeds, and measured on its way at the verbs of 500 new sentences that have two verbs.
"""

import math
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor, nn

from attention.trained import weight_files
from attention.trained.fitting import Recipe, build, fit
from attention.trained.who_and_whom.data import GRAMMARS, encode, new_sentences
from attention.trained.who_and_whom.evaluation import accuracy
from attention.trained.who_and_whom.model import WhoAndWhom
from attention.trained.who_and_whom.stored import WEIGHTS
from attention.trained.who_and_whom.training import losses

D_MODEL, N_HEADS = 128, 2  # so d_key is 64
SEEDS = (0, 1, 2)
BATCH = 64  # sentences of a step
PARTS = 6  # a run is measured at its start and after each sixth


class Run(NamedTuple):
    """How a model of this size is trained.

    Attributes:
        divisor: what its scores are divided by: 8 is √d_key, 1 means no division, and 64 is d_key.
        unit_scores: whether the components of its first queries and keys have a variance near 1, so
            that the variance of the scores is near d_key; otherwise W_q and W_k begin as torch
            draws them.
        recipe: how it learns.

    Example:
        >>> from attention.trained.who_and_whom import RUNS
        >>> RUNS["undivided"].divisor, RUNS["undivided"].recipe.steps
        (1, 600)
    """

    divisor: int
    unit_scores: bool
    recipe: Recipe = Recipe(steps=600, learning_rate=0.003)


RUNS = {
    "divided": Run(divisor=8, unit_scores=True),
    "undivided": Run(divisor=1, unit_scores=True),
    "divided by d_key": Run(divisor=64, unit_scores=True),
    "divided by d_key²": Run(divisor=4096, unit_scores=True),
    "divided, torch's first weights": Run(divisor=8, unit_scores=False),
    "undivided, torch's first weights": Run(divisor=1, unit_scores=False),
    "undivided, a third of the rate": Run(1, True, Recipe(steps=600, learning_rate=0.001)),
    "undivided, four times the steps": Run(1, True, Recipe(steps=2400, learning_rate=0.003)),
}


class Course(NamedTuple):
    """What was measured of a run on its way.

    Attributes:
        steps: (measured,), after how many batches of 64 sentences.
        right: (seeds, measured), the share of verbs at which both answers are right.
        largest: (seeds, measured), the mean of the largest weight that a verb gives in a head.

    Example:
        >>> from attention.trained.who_and_whom import load_course
        >>> load_course("divided").steps
        [0, 100, 200, 300, 400, 500, 600]
    """

    steps: list[int]
    right: Float[Tensor, "seeds measured"]
    largest: Float[Tensor, "seeds measured"]


def load_course(run: str) -> Course:
    """Load what was measured of a run.

    Args:
        run: one of `RUNS`.

    Raises:
        ValueError: there is no such run.

    Example:
        >>> from attention.trained.who_and_whom import load_course
        >>> divided, undivided = load_course("divided"), load_course("undivided")
        >>> divided.right[:, -1].min() > 0.95, undivided.right[:, -1].max() < 0.7
        (tensor(True), tensor(True))
    """
    if run not in RUNS:
        raise ValueError(f"no run is stored as {run!r}; it can be {', '.join(map(repr, RUNS))}")
    stored = load_file(WEIGHTS / "divisors.safetensors")
    at = list(RUNS).index(run)
    return Course(measured_at(RUNS[run]), stored["right"][at], stored["largest"][at])


def measured_at(run: Run) -> list[int]:
    return [run.recipe.steps * part // PARTS for part in range(PARTS + 1)]


def begin(run: Run, seed: int) -> WhoAndWhom:
    """A model as it is before its first step."""

    def make_run() -> WhoAndWhom:
        model = WhoAndWhom(D_MODEL, N_HEADS)
        if run.unit_scores:
            for layer in (model.attention.w_q, model.attention.w_k):
                nn.init.normal_(layer.weight, std=1 / math.sqrt(D_MODEL))
                nn.init.zeros_(layer.bias)
        # The model divides by √d_key. Lengthening a query by a factor enlarges its scores by the
        # same factor.
        longer = math.sqrt(model.attention.d_key) / run.divisor
        model.attention.w_q.register_forward_hook(lambda module, inputs, out: out * longer)
        return model

    return build(make_run, seed)


def train_run(run: Run, seed: int) -> tuple[list[float], list[float]]:
    """Train a model, and measure on the way the shares that are right and the largest weights."""
    batch = encode([each for each in new_sentences() if len(each.verbs) == 2][:500])
    right, largest = [], []

    @torch.no_grad()
    def measure(model: WhoAndWhom) -> None:
        weights = model(batch.token_ids, batch.verb).weights  # (batch, heads, query, key)
        at_verb = weights[torch.arange(len(weights)), :, batch.verb]
        right.append(accuracy(model, batch).both)
        largest.append(at_verb.amax(dim=-1).mean().item())

    def watch(step: int, loss: float, model: WhoAndWhom) -> None:
        if step in measured_at(run):
            measure(model)

    model = begin(run, seed)
    fit(model, losses(model, seed, GRAMMARS[8].draw, BATCH), run.recipe, watch=watch)
    measure(model)
    return right, largest


def train_divisors(*, dry_run: bool) -> None:
    """Train each run with each seed, print its accuracy on the way, and store what was measured."""
    measured: dict[str, list] = {"right": [], "largest": []}
    for name, run in RUNS.items():
        of_seeds = [train_run(run, seed) for seed in SEEDS]
        for i, what in enumerate(measured):
            measured[what].append([each[i] for each in of_seeds])
        for seed, (right, _) in zip(SEEDS, of_seeds, strict=True):
            shares = " ".join(f"{share:.2f}" for share in right)
            print(f"d_key 64, {name}, seed {seed}, both right on the way:  {shares}", flush=True)
    if not dry_run:
        tensors = {what: torch.tensor(numbers) for what, numbers in measured.items()}
        weight_files.write(path(), tensors)


def path() -> Path:
    return WEIGHTS / "divisors.safetensors"
