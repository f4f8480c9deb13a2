"""check_delta_write (chapter 18): one token written into a state by the delta rule."""

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def delta_write(state, key, value, beta):
    """state (d_key, d_value), key (d_key,) of length 1, value (d_value,), beta a number."""
    return state + placed(key, beta * (value - key @ state))


def placed(key: Tensor, row: Tensor) -> Tensor:
    """The row written under the key, (d_key, d_value)."""
    return key[:, None] * row


def of_answer(yours, right, inputs) -> str:
    """What the learner's state answers to the key, where the right one answers otherwise."""
    key = inputs["key"]
    (yours, *_), (right, *_) = yours, right
    if yours.shape != right.shape:
        return ""
    return (
        f"Asked with the key, your state answers with {(key @ yours)[0]:.2f} in its first "
        f"component, where {(key @ right)[0]:.2f} is expected."
    )


BANK = Bank.read(__file__, delta_write, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        d_key, d_value = numbers.sizes(2, least=3)
        key = F.normalize(numbers.tensor(d_key), dim=0)
        beta = numbers.sizes_from.choice((0.25, 0.5, 0.75))
        state, value = numbers.tensor(d_key, d_value), numbers.tensor(d_value)
        return Case({"state": state, "key": key, "value": value, "beta": beta})

    return [case(), case()]


TASK = Task("delta_write", delta_write, BANK, cases, {"state": "d_key d_value"})


def check_delta_write(function: Callable, *, seed: int = 0) -> Result:
    """Check delta_write(state, key, value, beta) -> the next state.

    state (d_key, d_value), key (d_key,) of length 1, value (d_value,), beta a number from 0 to 1.
    Read what the state answers to the key, and write the part beta of the difference to value.
    Returned is the new state, (d_key, d_value).
    """
    return examine(TASK, function, seed)
