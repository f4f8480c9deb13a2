"""Inputs that tell right from wrong: random numbers, the same in every run, no two sizes alike."""

import random
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# No product of two of them is among them: n_heads · d_key is never the size of another axis.
SIZES = (2, 3, 4, 5, 7, 9)


@dataclass(frozen=True)
class Case:
    """Arguments by name, in the order in which they are passed.

    unsaid: names that the learner does not pass, and that no message needs.
    """

    inputs: dict[str, Any]
    unsaid: tuple[str, ...] = ()

    def copies(self) -> list:
        return [copied(x) for x in self.inputs.values()]

    def __str__(self) -> str:
        said = {name: x for name, x in self.inputs.items() if name not in self.unsaid}
        return ", ".join(
            f"{name} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"{name}={x!r}"
            for name, x in said.items()
        )


def copied(x: Any) -> Any:
    """A tensor of its own, or a dict of such; anything else as it is."""
    if isinstance(x, dict):
        return {name: copied(inside) for name, inside in x.items()}
    return x.clone() if isinstance(x, Tensor) else x


class Numbers:
    """Draws sizes and numbers; another seed gives others."""

    def __init__(self, seed: int) -> None:
        self.sizes_from = random.Random(seed)
        self.numbers_from = torch.Generator().manual_seed(seed)

    def sizes(self, count: int, *, least: int = 2) -> list[int]:
        """Draw sizes that all differ."""
        return self.sizes_from.sample([size for size in SIZES if size >= least], count)

    def tensor(self, *shape: int) -> Tensor:
        """Draw numbers between -2 and 2 with six decimals; float32, whatever the default is.

        Integers are drawn, since they are the same on every machine.
        """
        millionths = torch.randint(-2_000_000, 2_000_001, shape, generator=self.numbers_from)
        return millionths.to(torch.float32) / 1e6

    def padding(self, batch: int, seq: int) -> Tensor:
        """Draw which of (batch, seq) are tokens: of each sentence at least one, never all."""
        lengths = [self.sizes_from.randint(1, seq - 1) for _ in range(batch)]
        return torch.arange(seq) < torch.tensor(lengths)[:, None]
