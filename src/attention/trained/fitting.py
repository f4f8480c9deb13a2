"""How every small model of the book is trained: Adam, and a learning rate that rises and falls.

The rate follows one cycle: it rises to its largest, and falls to nearly 0 at the last step. At the
end the weights are rounded to half precision, in which they are stored, so that what is measured
holds for the stored ones.
"""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from attention.arguments import require_size

Model = TypeVar("Model", bound=nn.Module)


def build(make: Callable[[], Model], seed: int = 0) -> Model:
    """Make a model whose first weights the seed draws; the caller's random numbers stay."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def fit(
    model: Model,
    loss_at: Callable[[int], Tensor],
    *,
    steps: int,
    learning_rate: float,
    largest_gradient: float | None = None,
) -> Model:
    """Train a model in place, and return it in evaluation mode, its weights rounded.

    Args:
        model: as it is before the first step.
        loss_at: computes the loss of a step, given the step's number, from 0.
        steps: how many.
        learning_rate: its largest on the way.
        largest_gradient: the norm to which a step's gradient is clipped; not at all unless given.
    """
    require_size("steps", steps)
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, learning_rate, total_steps=steps)
    for step in range(steps):
        loss = loss_at(step)
        optimiser.zero_grad()
        loss.backward()
        if largest_gradient is not None:
            nn.utils.clip_grad_norm_(model.parameters(), largest_gradient)
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())
    return model.eval()
