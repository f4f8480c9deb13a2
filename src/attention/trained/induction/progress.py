"""How the two induction models learned: their loss, and what their heads did, on the way.

A model that has not found out how to look things up is about as good after 200 steps as after 50.
Then the loss falls within about 50 steps, and the previous-token head and the induction heads
appear within the hundred steps around these.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor

from attention.trained import weight_files
from attention.trained.head_scores import induction_score, previous_token_score
from attention.trained.induction.data import new_sequences
from attention.trained.induction.model import LAYERS, AttentionOnly
from attention.trained.induction.stored import WEIGHTS, require_stored
from attention.trained.induction.training import SEEDS, train

EVERY = 25  # steps that one stored number stands for


class Progress(NamedTuple):
    """What was measured on the way, a number for every 25 steps.

    Attributes:
        loss: (points,), the mean over the 25 steps, in nats.
        previous: (points,), the largest `previous_token_score` of a head of the first layer, in
            the middle of the 25 steps.
        induction: (points,), the largest `induction_score` of a head of the last layer, likewise.
    """

    loss: Float[Tensor, " points"]
    previous: Float[Tensor, " points"]
    induction: Float[Tensor, " points"]


def load_progress(n_layers: int = 2) -> Progress:
    """Load what was measured while a stored model was trained.

    Args:
        n_layers: one of `LAYERS`.

    Returns:
        Three tensors of 48 numbers, for 1,200 steps.

    Raises:
        ValueError: nothing is stored for that many layers.

    Source:
        This book's own; Olsson et al. 2022, Argument 1, follow a loss and head scores in this way.

    Example:
        >>> from attention.trained.induction import load_progress
        >>> loss, _, induction = load_progress(2)
        >>> loss.shape, (loss[0] > 3.4).item(), (loss[-1] < 0.1).item()
        (torch.Size([48]), True, True)
        >>> (induction[4] < 0.2).item(), (induction[-1] > 0.9).item()  # at step 112, at step 1187
        (True, True)
    """
    require_stored(n_layers)
    return Progress(**load_file(path(n_layers)))


def train_watched(n_layers: int) -> tuple[AttentionOnly, Progress]:
    """Train the model that is to be stored, and measure it on the way."""
    token_ids, _ = new_sequences(500)
    losses, previous, induction = [], [], []

    def record(step: int, loss: float, model: AttentionOnly) -> None:
        losses.append(loss)
        if step % EVERY == EVERY // 2:
            with torch.no_grad():
                _, weights = model(token_ids)
            previous.append(previous_token_score(weights[0]).max())
            induction.append(induction_score(weights[-1], token_ids).max())

    model = train(n_layers, SEEDS[n_layers], watch=record)
    means = torch.tensor(losses).view(-1, EVERY).mean(dim=1)
    return model, Progress(means, torch.stack(previous), torch.stack(induction))


def train_progress(*, dry_run: bool) -> None:
    """Train the stored models once more, print what they reached on the way, and store it."""
    for n_layers in LAYERS:
        _, progress = train_watched(n_layers)
        ends = "  ".join(f"{name} {each[-1]:.3f}" for name, each in progress._asdict().items())
        print(f"on the way, {n_layers} layer(s), at the end:  {ends}", flush=True)
        if not dry_run:
            weight_files.write(path(n_layers), progress._asdict())


def path(n_layers: int) -> Path:
    return WEIGHTS / f"{n_layers}-layer-progress.safetensors"
