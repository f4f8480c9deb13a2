"""How every small model of the book is trained: Adam, and a learning rate that rises and falls.

The rate follows one cycle: it rises to its largest value, and falls to nearly 0 at the last step.
At the end the weights are rounded to half precision, in which they are stored, so that what is
measured holds for the stored weights.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from attention.arguments import require_size

Model = TypeVar("Model", bound=nn.Module)


class Recipe(NamedTuple):
    """How a model learns.

    Attributes:
        steps: how many batches.
        learning_rate: its largest value on the way.
        largest_gradient: the norm to which a step's gradient is clipped; None if it is not clipped.
    """

    steps: int
    learning_rate: float
    largest_gradient: float | None = None


def build(make: Callable[[], Model], seed: int = 0) -> Model:
    """Make a model whose first weights the seed draws; the caller's random state is kept."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def fit(
    model: Model,
    losses: Iterator[Tensor],
    recipe: Recipe,
    *,
    steps: int | None = None,
    watch: Callable[[int, float, Model], None] | None = None,
) -> Model:
    """Train a model in place, and return it in evaluation mode, with its weights rounded.

    Args:
        model: as it is before the first step.
        losses: draws a batch for each step, and computes the model's loss on it.
        recipe: how it learns.
        steps: how many; the recipe's unless given.
        watch: called before each step with its number, from 0, the loss of its batch and the model,
            which it may read but not change.
    """
    steps = recipe.steps if steps is None else steps
    require_size("steps", steps)
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.learning_rate, total_steps=steps
    )
    for step in range(steps):
        loss = next(losses)
        if watch is not None:
            watch(step, loss.item(), model)
        optimiser.zero_grad()
        loss.backward()
        if recipe.largest_gradient is not None:
            nn.utils.clip_grad_norm_(model.parameters(), recipe.largest_gradient)
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())
    return model.eval()
