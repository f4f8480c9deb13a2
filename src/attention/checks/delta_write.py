"""check_delta_write (chapter 18): one token written into a state by the delta rule."""

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


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
        f"component, where {(key @ right)[0]:.2f} is due."
    )


@BANK.mistake(
    "Nothing is read before you write: the value is added to what stands under the key. That is "
    "the plain sum, and a key that is written twice answers with both values.",
    "Read first, `key @ state`, and write only the difference to `value`.",
    of_answer,
)
def added_without_reading(state, key, value, beta):
    return state + placed(key, beta * value)


@BANK.mistake(
    "beta is left out: the whole difference is written, as with beta = 1.",
    "Multiply the difference by beta before you write it.",
    of_answer,
)
def beta_forgotten(state, key, value, beta):
    return state + placed(key, value - key @ state)


@BANK.mistake(
    "beta scales the value alone. What was read is taken away as a whole, so that with a small "
    "beta the state loses the old value and gets little of the new one.",
    "Take the difference first, and scale it: beta · (value − what was read).",
    of_answer,
)
def beta_on_the_value_alone(state, key, value, beta):
    return state + placed(key, beta * value - key @ state)


@BANK.mistake(
    "beta scales only what was read. The new value is written as a whole beside a rest of the old "
    "one.",
    "Take the difference first, and scale it: beta · (value − what was read).",
    of_answer,
)
def beta_on_the_old_value_alone(state, key, value, beta):
    return state + placed(key, value - beta * (key @ state))


@BANK.mistake(
    "The difference has the wrong sign, what was read − value. Each write leads away from the "
    "value.",
    "Write value − what was read.",
    of_answer,
)
def wrong_sign(state, key, value, beta):
    return state + placed(key, beta * (key @ state - value))


@BANK.mistake(
    "The whole state fades by 1 − beta, and the value is added. Asked with this key, your state "
    "even answers right. But what stands under all other keys has shrunk too, and the delta rule "
    "leaves alone what is at right angles to the key.",
    "Leave the state as it is, and add key times beta · (value − key @ state).",
)
def everything_fades(state, key, value, beta):
    return (1 - beta) * state + placed(key, beta * value)


@BANK.mistake(
    "The old state is lost: this is what the new token writes, without what stood there before.",
    "Add it to `state`.",
    of_answer,
)
def state_dropped(state, key, value, beta):
    return placed(key, beta * (value - key @ state))


@BANK.mistake(
    "This is the outer product the wrong way round: value by key, (d_value, d_key). The state has "
    "a row for each component of the key.",
    "Let the key run down the rows: `key[:, None] * difference`, or "
    "`torch.outer(key, difference)`.",
)
def transposed(state, key, value, beta):
    return state + (beta * (value - key @ state))[:, None] * key


@BANK.mistake(
    "This reads with the state on the left, `state @ key`, which is how the papers write it: their "
    "state has a row for each component of the value. Here it has one for each component of the "
    "key.",
    "Read with `key @ state`, (d_key,) times (d_key, d_value).",
)
def read_from_the_left(state, key, value, beta):
    return state + placed(key, beta * (value - state @ key))


@BANK.mistake(
    "What you read is not summed: `key[:, None] * state` has a row for each component of the key, "
    "and what the state answers is the sum of these rows.",
    "Read with a product: `key @ state`, (d_value,).",
    of_answer,
)
def read_row_by_row(state, key, value, beta):
    return state + beta * (placed(key, value) - key[:, None] * state)


@BANK.mistake(
    "You write first and read afterwards: what is taken away already holds part of the new value.",
    "Read from the state as it came, before anything is added to it.",
    of_answer,
)
def read_after_writing(state, key, value, beta):
    written = state + placed(key, beta * value)
    return written - placed(key, beta * (key @ written))


@BANK.mistake(
    "This is what the new state answers to the key, not the state.",
    "Return the whole matrix, (d_key, d_value): the next token writes into it.",
)
def answer_in_place_of_the_state(state, key, value, beta):
    return key @ delta_write(state, key, value, beta)


@BANK.mistake(
    "This is the difference, not the state: it is still to be written.",
    "Write it under the key and add it to the state: `state + key[:, None] * difference`.",
)
def difference_alone(state, key, value, beta):
    return beta * (value - key @ state)


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
