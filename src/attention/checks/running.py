"""Run a function on one input and keep the outcome: tensors, an exception, or a message."""

import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from .comparing import same
from .inputs import Case

# A line in one of these files is not the learner's own.
LIBRARIES = (
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    str(Path(__file__).parents[1]),
)


class Message(Exception):
    """Ends a run with a sentence for the learner, where there is nothing to compare."""


@dataclass(frozen=True)
class Outcome:
    """One of three: the tensors returned, the error raised, or a message for the learner."""

    parts: tuple[Tensor, ...] = ()
    error: BaseException | None = None
    message: str = ""


def outcome(function: Callable, inputs: list, names: list[str]) -> Outcome:
    """Call a function and read its result as the parts that `names` lists."""
    try:
        return Outcome(parts_of(function(*inputs), names))
    except Message as message:
        return Outcome(message=str(message))
    except (Exception, SystemExit) as error:  # a learner's exit() must not end the kernel
        if isinstance(error, NotImplementedError) and not str(error):
            return Outcome(message=f"This is still to be written: {about_error(error)}")
        return Outcome(error=error)


def learners_outcome(function: Callable, case: Case, names: list[str], changing: str) -> Outcome:
    """The outcome of a learner's function. It must not change its inputs, and must repeat itself.

    changing: the message where two calls with the same inputs differ.
    """
    inputs = case.copies()
    first = outcome(function, inputs, names)
    if not first.parts:
        return first
    for (name, before), after in zip(case.inputs.items(), inputs, strict=True):
        if isinstance(before, Tensor) and not unchanged(before, after):
            return Outcome(
                message=f"An input is changed in place: after the call {name} is another one, and "
                "the caller still needs it. Write to a new tensor: no method whose name ends in "
                f"an underscore, no `{name} /= …`, no `{name}[…] = …`, on the input or on a view."
            )
    second = outcome(function, case.copies(), names)
    if not second.parts or not all(map(same, first.parts, second.parts)):
        return Outcome(message=f"Two calls with the same inputs give different results. {changing}")
    return first


def unchanged(before: Tensor, after: Tensor) -> bool:
    """Whether two tensors have the same entries; NaN counts as the same as NaN."""
    return before.shape == after.shape and bool(
        torch.isclose(before, after, rtol=0.0, atol=0.0, equal_nan=True).all()
    )


def parts_of(value: object, names: list[str]) -> tuple[Tensor, ...]:
    """Read a returned value as tensors; all but the first may be left out or None."""
    owed = "one tensor" if len(names) == 1 else f"({', '.join(names)})"
    if value is None:
        raise Message(
            "None came back. Either there is nothing in it yet, or its last line lacks the word "
            f"`return`; it must return {owed}."
        )
    values = value if isinstance(value, tuple) and len(names) > 1 else (value,)
    while len(values) > 1 and values[-1] is None:
        values = values[:-1]
    if not 1 <= len(values) <= len(names):
        raise Message(f"A tuple of {len(values)} came back; it must return {owed}.")
    for part in values:
        if not isinstance(part, Tensor):
            kind = type(part).__name__
            inside, way = "", WAYS_TO_A_TENSOR.get(kind, "")
            if isinstance(part, (tuple, list)):
                inside = f", of length {len(part)},"
                if part and not any(isinstance(each, Tensor) for each in part):
                    way = f"`torch.tensor` makes a tensor of a {kind} of numbers."
            raise Message(
                f"A value of type {kind}{inside} came back where a tensor is expected; it must "
                f"return {owed}. {way}".rstrip()
            )
    # A copy: a function may return the same memory at every call.
    return tuple(part.detach().cpu().to_dense().clone() for part in values)


WAYS_TO_A_TENSOR = {
    "list": "`torch.stack` joins a list of tensors along a new axis, `torch.cat` along an old one.",
    "tuple": "`torch.stack` joins several tensors along a new axis, `torch.cat` along an old one.",
    "ndarray": "Stay with torch: a numpy array has no gradient. `torch.from_numpy` turns it back.",
}


def about_error(error: BaseException) -> str:
    """One sentence: the error, the learner's line that raised it, and its message."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.line for f in frames if f.line and not f.filename.startswith(LIBRARIES)]
    raised = type(error).__name__ + (f" in your line `{lines[-1]}`" if lines else "")
    # Addresses and folders differ from run to run and from machine to machine.
    words = re.sub(r"0x[0-9a-fA-F]+", "0x…", " ".join(str(error).split()))
    words = re.sub(r"(?<![\w.])/(?:[\w.~-]+/)+", "…/", words)
    words = words if len(words) <= 300 else words[:300] + " …"
    return f"{raised}: {words}" if words else f"{raised}."


@contextmanager
def aside() -> Iterator[None]:
    """Leave the caller's random numbers as they are; make tensors on the CPU, with gradients."""
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.enable_grad():
        yield
