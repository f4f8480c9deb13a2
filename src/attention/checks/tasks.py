"""Tools for testing a task of your own, where none of the checks fits.

    from attention.checks.tasks import ask, not_yet

    if ask(my_mask, n_queries=3, n_keys=5).shape != (3, 5):
        not_yet("my_mask", "The mask must be (n_queries, n_keys).")

A test that fails ends in `NotYet`, which a notebook shows as its words alone. An assignment imports
from here alone: the checks, and what they are made of, stand here too.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from torch import Tensor

from . import *  # noqa: F403 - an assignment finds every check here
from . import __all__ as CHECKS
from .bank import Bank, Mistake
from .comparing import difference, same
from .examining import Task, examine
from .inputs import Case, Numbers
from .multihead_bank import BANK as MULTI_HEAD_BANK
from .multihead_bank import whole
from .result import Result
from .running import about_error, learners_outcome

__all__ = [
    *CHECKS,
    "MULTI_HEAD_BANK",
    "Case",
    "Numbers",
    "about_error",
    "ask",
    "call",
    "difference",
    "expect",
    "not_yet",
    "same",
    "whole",
]


def not_yet(task: str, *paragraphs: str) -> None:
    """End a test with these words. Raises NotYet."""
    Result(task, False, paragraphs).require()


def call(task: str, function: Callable, *inputs: Any, **named: Any) -> Any:
    """Call a learner's function; where it raises an error, end the test with a message."""
    try:
        return function(*inputs, **named)
    except (Exception, SystemExit) as error:
        still = "This is still to be written: " * isinstance(error, NotImplementedError)
        return not_yet(task, f"{still}{about_error(error)}")


def ask(function: Callable, **inputs: Any) -> Tensor:
    """Call a learner's function for a tensor; where there is none, end the test with a message."""
    case, changing = Case(inputs), "It must depend on nothing but its inputs."
    result = learners_outcome(function, case, ["result"], changing)
    if result.error is not None:
        not_yet(function.__name__, about_error(result.error), f"That was with {case}.")
    if result.message:
        not_yet(function.__name__, result.message)
    return result.parts[0]


def expect(
    task: str,
    function: Callable,
    right: Tensor,
    mistakes: Iterable[tuple[Tensor, str, str]],
    axes: str,
    errors: Iterable[tuple[str, str]] = (),
    **inputs: Any,
) -> None:
    """Run a function on these inputs. Where it does not return `right`, say why, if it is known.

    mistakes: (what a mistake returns, why it is wrong, the way out) for each.
    axes: those of the result, such as "batch seq d_model".
    errors: (a piece of an error's message, the way out) for errors that mistakes raise.
    """
    bank = Bank(
        Mistake("", lambda *inputs, returned=returned: returned, why, way_out)
        for returned, why, way_out in mistakes
    )
    case = Case(inputs)
    one_case = Task(task, lambda *inputs: right, bank, lambda numbers: [case], {"result": axes})
    found = examine(one_case, function, 0)
    ways_out = [way_out for piece, way_out in errors if piece in found.paragraphs[0]]
    replace(found, check=task, paragraphs=(*found.paragraphs, *ways_out)).require()
