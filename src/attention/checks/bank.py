"""A bank of mistakes: functions that go wrong as people do, each with the words that name it.

To add one, write the function as a learner would, with the arguments of the right one, and

    @BANK.mistake("Your numbers are what … gives: why that is wrong.", "The way out.")

above it. Where a number of the learner's own result convinces, say it in `evidence`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

# What a function returned (output, and weights where there are any), what the right one returns,
# and the inputs by name -> one sentence.
Evidence = Callable[[tuple[Tensor, ...], tuple[Tensor, ...], dict[str, Any]], str]


@dataclass(frozen=True)
class Mistake:
    """A function that is wrong, why it is wrong, the way out, and a sentence with numbers."""

    name: str
    function: Callable
    why: str
    way_out: str
    evidence: Evidence | None = None

    def __call__(self, *inputs):
        return self.function(*inputs)


class Bank(list):
    """The mistakes that one check knows."""

    def mistake(self, why: str, way_out: str, evidence: Evidence | None = None) -> Callable:
        """A decorator: the function below it becomes a `Mistake` of this bank."""

        def add(function: Callable) -> Mistake:
            self.append(Mistake(function.__name__, function, why, way_out, evidence))
            return self[-1]

        return add
