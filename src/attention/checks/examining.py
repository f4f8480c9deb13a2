"""Compare a learner's function with the right one, and name the mistake if the bank has it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from .bank import Bank, Mistake
from .comparing import difference, same
from .inputs import Case, Numbers
from .result import Result
from .running import Outcome, about_error, aside, learners_outcome, outcome

FLOAT64 = (
    "A note: float64 came back for float32, and the next layer would refuse it. Compute in float64 "
    "if you like, and end with `.to(torch.float32)`."
)
CHANGING = (
    "Something in it is drawn at random, such as dropout or a layer that is created afresh at "
    "every call, or it remembers the call before."
)


@dataclass(frozen=True)
class Task:
    """A function to write, and how to check it.

    name: the name of the function.
    right: a right version of it.
    bank: known mistakes.
    cases: draws the inputs.
    parts: the tensors it returns, with their axes: {"weights": "batch heads query key"}.
    changing: the message where two calls with the same inputs differ.
    first_is_enough: whether the parts after the first may be left out, as attention's weights may.
    """

    name: str
    right: Callable
    bank: Bank
    cases: Callable[[Numbers], list[Case]]
    parts: dict[str, str]
    changing: str = CHANGING
    first_is_enough: bool = False


def examine(task: Task, function: Callable, seed: int) -> Result:
    """Run the learner's function on all cases, compare, and explain the first failure."""
    check = f"check_{task.name}"
    if not callable(function):
        way_out = f"Give it the function itself, without calling it: `{check}({task.name})`."
        return Result(check, False, (f"This is a {type(function).__name__}. {way_out}",))
    with aside():
        cases = task.cases(Numbers(seed))
        tried, failures, notes = [], [], ()
        for case in cases:
            right = outcome(task.right, case.copies(), list(task.parts))
            yours = learners_outcome(function, case, list(task.parts), task.changing)
            tried.append((case, yours, right))
            if not (yours.parts and all(map(same, yours.parts, right.parts))):
                failures.append((case, yours, right))
            elif len(yours.parts) < len(task.parts) and not task.first_is_enough:
                failures.append((case, Outcome(message=half_of(task, len(yours.parts))), right))
            elif any(part.dtype == torch.float64 for part in yours.parts):
                notes = (FLOAT64,)
        if not failures:
            said = f"{len(cases)} inputs of different sizes, and every value is right."
            return Result(check, True, (said, *notes))
        for failure in failures:
            if named := mistakes_of(task, failure, failures, tried):
                break
        else:
            failure = failures[0]
        paragraphs = tuple(explanation(task, *failure, named))
    return Result(check, False, paragraphs, tuple(mistake.name for mistake in named))


def half_of(task: Task, came: int) -> str:
    """What to say where the first parts are right and the others did not come back."""
    names = list(task.parts)
    right, due = (" and ".join(some) for some in (names[:came], names[came:]))
    verbs = "is" if came == 1 else "are", "is" if came == len(names) - 1 else "are"
    owed = f"it must return ({', '.join(names)})"
    return f"Your {right} {verbs[0]} right. What is missing {verbs[1]} {due}: {owed}."


def explanation(
    task: Task, case: Case, yours: Outcome, right: Outcome, named: list[Mistake]
) -> Iterator[str]:
    """Explain one failure, a paragraph at a time."""
    if yours.message:
        yield yours.message
        return
    if yours.error is not None:
        yield about_error(yours.error)
    if len(named) > 1:
        yield f"{len(named)} mistakes have this outcome; one of them may be yours."
    elif named and yours.error is not None:
        yield "A mistake that raises this very error:"
    for mistake in named:
        sentences = [mistake.why, mistake.way_out]
        if mistake.evidence and len(yours.parts) == len(right.parts):
            sentences.insert(1, mistake.evidence(yours.parts, right.parts, case.inputs))
        yield " ".join(sentences)
    if yours.parts:
        where = difference(task.parts, yours.parts, right.parts, rule=not named)
        yield f"With {case}: {where}"
    else:
        yield f"That was with {case}."


def mistakes_of(
    task: Task, failure: tuple, failures: list[tuple], tried: list[tuple]
) -> list[Mistake]:
    """The mistakes with this outcome; of these only those that agree most, where some do.

    Most is to be right as well where the learner is: `abs(k)` is wrong for a negative k alone. Next
    comes to have the outcome of every failure.
    """
    case, yours, _ = failure
    named = [m for m in task.bank if same_outcome(m, task, case, yours)]
    for outcomes in (tried, failures):
        everywhere = [
            m for m in named if all(same_outcome(m, task, case, its) for case, its, _ in outcomes)
        ]
        if everywhere:
            return everywhere
    return named


def same_outcome(mistake: Mistake, task: Task, case: Case, theirs: Outcome) -> bool:
    """Whether a mistake gives the same tensors, or raises the same error."""
    its = outcome(mistake, case.copies(), list(task.parts))
    if its.error is not None and theirs.error is not None:
        return type(its.error) is type(theirs.error) and str(its.error) == str(theirs.error)
    # A learner may return fewer parts than the mistake does.
    return bool(its.parts and theirs.parts) and all(map(same, theirs.parts, its.parts))
