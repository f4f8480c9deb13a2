"""The book's model on the way: its weights after some steps of training, and the loss.

Two seeds are stored. The heads of the first take a role each; those of the second mix both answers.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor

from attention.trained import weight_files
from attention.trained.fitting import build
from attention.trained.who_and_whom.data import encode, new_sentences
from attention.trained.who_and_whom.evaluation import Accuracy, Head, accuracy, roles
from attention.trained.who_and_whom.model import WhoAndWhom
from attention.trained.who_and_whom.stored import WEIGHTS
from attention.trained.who_and_whom.training import train

SEEDS = (4, 2)
STEPS = (0, 50, 100, 150, 200, 300, 400, 600, 1000, 2000)  # of 128 sentences; the last is the end
EVERY = 25  # steps whose mean loss is stored as one number


class Checkpoint(NamedTuple):
    """A model on its way, and what was measured of it on 4,000 new sentences."""

    model: WhoAndWhom
    right: Accuracy
    roles: list[Head]


def load_checkpoint(seed: int, step: int) -> Checkpoint:
    """Load the model with d_model 8 and 2 heads as it was after a number of steps.

    Args:
        seed: one of `SEEDS`.
        step: one of `STEPS`; each is a batch of 128 sentences.

    Returns:
        The model in evaluation mode, its weights rounded to half precision, and what was measured
        of it in this form.

    Raises:
        ValueError: nothing is stored for this seed and step.

    Example:
        >>> from attention.trained.who_and_whom import load_checkpoint
        >>> load_checkpoint(seed=4, step=0).right.both < 0.01
        True
        >>> load_checkpoint(seed=4, step=2000).right.both > 0.99
        True
    """
    require_stored(seed, step)
    at = STEPS.index(step)
    weights = load_file(path(seed))
    del weights["loss"]
    model = build(lambda: WhoAndWhom(8, 2))
    model.load_state_dict({name: tensor[at].float() for name, tensor in weights.items()})
    measured = weight_files.metadata(path(seed))
    heads = [Head(*pair) for pair in measured["roles"][at]]
    return Checkpoint(model.eval(), Accuracy(*measured["right"][at]), heads)


def load_losses(seed: int) -> Float[Tensor, " points"]:
    """Load the loss of training: the mean of every 25 steps.

    Args:
        seed: one of `SEEDS`.

    Returns:
        (points,), eighty numbers in nats, for the cross-entropies of who and of whom, added
        together.

    Raises:
        ValueError: nothing is stored for this seed.

    Example:
        >>> from attention.trained.who_and_whom import load_losses
        >>> losses = load_losses(seed=4)
        >>> losses.shape, (losses[0] > 8).item(), (losses[-1] < 0.01).item()
        (torch.Size([80]), True, True)
    """
    require_stored(seed, STEPS[0])
    return load_file(path(seed))["loss"]


def train_checkpoints(*, dry_run: bool) -> None:
    """Train the model with each seed, and at each of `STEPS` print its accuracy and store it."""
    for seed in SEEDS:
        weights, right, heads = train_watched(seed)
        shares = " ".join(f"{both:.3f}" for _, _, both in right)
        print(f"on the way, seed {seed}, both right at each of {STEPS}:  {shares}", flush=True)
        if not dry_run:
            weight_files.write(path(seed), weights, right=right, roles=heads)


def train_watched(
    seed: int,
) -> tuple[dict[str, Tensor], list[list[float]], list[list[list[float]]]]:
    """Train a model; return its weights at `STEPS` with its losses, its accuracies and roles."""
    states, losses = [], []

    def record(step: int, loss: float, model: WhoAndWhom) -> None:
        losses.append(loss)
        if step in STEPS:
            states.append(weight_files.half(model))

    model = train(8, 2, seed, watch=record)
    states.append(weight_files.half(model))
    weights = {name: torch.stack([state[name] for state in states]) for name in states[0]}
    weights["loss"] = torch.tensor(losses).view(-1, EVERY).mean(dim=1)

    sentences = new_sentences()
    batch = encode(sentences)
    right, heads = [], []
    for state in states:  # as they are stored
        model.load_state_dict({name: x.float() for name, x in state.items()})
        right.append([round(share, 4) for share in accuracy(model, batch)])
        heads.append([[round(share, 3) for share in head] for head in roles(model, sentences)])
    return weights, right, heads


def require_stored(seed: int, step: int) -> None:
    if seed not in SEEDS or step not in STEPS:
        raise ValueError(
            f"no weights are stored for seed={seed} and step={step}; seed can be "
            f"{' or '.join(map(str, SEEDS))}, step {', '.join(map(str, STEPS))}"
        )


def path(seed: int) -> Path:
    return WEIGHTS / f"8x2-seed-{seed}.safetensors"
