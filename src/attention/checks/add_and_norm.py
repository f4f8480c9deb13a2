"""check_add_and_norm (chapter 11): the residual sum, and layer norm over each of its rows."""

from collections.abc import Callable

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

EPS = 1e-5
# Rows as small as these show where eps stands.
SMALL = 0.01


def add_and_norm(x, output, gain, bias):
    """x and output (batch, seq, d_model), gain and bias (d_model,) -> (batch, seq, d_model)."""
    return gain * normalised(x + output) + bias


def normalised(x, dim=-1, correction=0, eps=EPS):
    mean = x.mean(dim=dim, keepdim=True)
    variance = x.var(dim=dim, correction=correction, keepdim=True)
    return (x - mean) / (variance + eps).sqrt()


BANK = Bank.read(__file__, add_and_norm, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case(size: float) -> Case:
        batch, seq, d_model = numbers.sizes(3, least=3)
        x, output = (size * numbers.tensor(batch, seq, d_model) for _ in range(2))
        gain, bias = numbers.tensor(d_model), numbers.tensor(d_model)
        return Case({"x": x + size, "output": output, "gain": gain, "bias": bias})

    return [case(SMALL), case(1.0)]


TASK = Task("add_and_norm", add_and_norm, BANK, cases, {"rows": "batch seq d_model"})


def check_add_and_norm(function: Callable, *, seed: int = 0) -> Result:
    """Check add_and_norm(x, output, gain, bias) -> rows.

    x and output (batch, seq, d_model), gain and bias (d_model,) -> (batch, seq, d_model): layer
    norm of x + output over each row, with eps 1e-5 inside the root.
    """
    return examine(TASK, function, seed)
