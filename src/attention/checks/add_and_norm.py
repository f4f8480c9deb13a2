"""check_add_and_norm (chapter 11): the residual sum, and layer norm over each of its rows."""

from collections.abc import Callable

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
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


@BANK.mistake(
    "The mean and the variance are those of the sequence, axis 1. Then a row depends on the other "
    "words of its sentence, padding among them.",
    "Each row is normalised by itself, over its d_model numbers: `dim=-1`, with `keepdim=True`.",
)
def over_the_sequence(x, output, gain, bias):
    return gain * normalised(x + output, dim=1) + bias


@BANK.mistake(
    "The mean and the variance are those of the batch, axis 0, as batch norm has them. Then a "
    "sentence's rows depend on the other sentences.",
    "Each row is normalised by itself, over its d_model numbers: `dim=-1`, with `keepdim=True`.",
)
def over_the_batch(x, output, gain, bias):
    return gain * normalised(x + output, dim=0) + bias


@BANK.mistake(
    "The mean and the variance are those of a whole sentence, all its rows together. Padding is "
    "among them.",
    "Each row is normalised by itself, over its d_model numbers: `dim=-1`, with `keepdim=True`.",
)
def over_a_sentence(x, output, gain, bias):
    return gain * normalised(x + output, dim=(1, 2)) + bias


@BANK.mistake(
    "One mean and one variance for the whole batch: a row depends on every other.",
    "Each row is normalised by itself, over its d_model numbers: `dim=-1`, with `keepdim=True`.",
)
def over_everything(x, output, gain, bias):
    return gain * normalised(x + output, dim=(0, 1, 2)) + bias


@BANK.mistake(
    "One mean and one variance for the whole batch, and the variance is the estimate for a sample, "
    "divided by one less than there are numbers: a row depends on every other.",
    "Each row is normalised by itself: `dim=-1`, with `keepdim=True`, and `correction=0` in `var`.",
)
def over_everything_of_a_sample(x, output, gain, bias):
    return gain * normalised(x + output, dim=(0, 1, 2), correction=1) + bias


@BANK.mistake(
    "Without `keepdim=True` the mean or the variance has lost its last axis: (batch, seq) "
    "does not fit the rows.",
    "`rows.mean(dim=-1, keepdim=True)` is (batch, seq, 1), one mean for each row. The same for "
    "`var`.",
)
def without_keepdim(x, output, gain, bias):
    x = x + output
    return gain * (x - x.mean(dim=-1)) + bias


@BANK.mistake(
    "The variance is the estimate for a sample, divided by d_model − 1. torch's `var` and `std` do "
    "that unless told otherwise; layer norm divides by d_model.",
    "Say so: `.var(dim=-1, correction=0, keepdim=True)`.",
)
def variance_of_a_sample(x, output, gain, bias):
    return gain * normalised(x + output, correction=1) + bias


@BANK.mistake(
    "eps is added to the standard deviation, outside of the root. Layer norm adds it to the "
    "variance: for small rows the two differ.",
    "Take the root of both: `(variance + 1e-5).sqrt()`.",
)
def eps_outside_of_the_root(x, output, gain, bias):
    x = x + output
    deviation = x.std(dim=-1, correction=0, keepdim=True)
    return gain * (x - x.mean(dim=-1, keepdim=True)) / (deviation + EPS) + bias


@BANK.mistake(
    "eps is missing. A row whose numbers are all the same would be divided by 0, and small rows "
    "come out too large.",
    "Add it to the variance: `(variance + 1e-5).sqrt()`.",
)
def without_eps(x, output, gain, bias):
    return gain * normalised(x + output, eps=0) + bias


@BANK.mistake(
    "This divides by the variance. The standard deviation, its root, brings the rows to one size.",
    "Take the root: `(variance + 1e-5).sqrt()`.",
)
def divided_by_the_variance(x, output, gain, bias):
    x = x + output
    variance = x.var(dim=-1, correction=0, keepdim=True)
    return gain * (x - x.mean(dim=-1, keepdim=True)) / (variance + EPS) + bias


@BANK.mistake(
    "The mean is still in the rows. What divides by the root of the mean square alone is RMSNorm, "
    "another norm.",
    "Subtract the mean of each row before you divide.",
)
def root_mean_square(x, output, gain, bias):
    x = x + output
    return gain * x / (x.square().mean(dim=-1, keepdim=True) + EPS).sqrt() + bias


@BANK.mistake(
    "The mean is still in the rows: they are divided by their standard deviation alone.",
    "Subtract the mean of each row before you divide.",
)
def mean_not_subtracted(x, output, gain, bias):
    x = x + output
    variance = x.var(dim=-1, correction=0, keepdim=True)
    return gain * x / (variance + EPS).sqrt() + bias


@BANK.mistake(
    "The residual is missing: this normalises what the sublayer made, and x is lost.",
    "Add x to the output before you normalise.",
)
def without_the_residual(x, output, gain, bias):
    return gain * normalised(output) + bias


@BANK.mistake(
    "x is added after the norm. The sum is what is normalised in post-norm order, LayerNorm(x + "
    "output); yours lets the rows grow from layer to layer, and is not pre-norm either, which "
    "normalises what goes *into* the sublayer.",
    "Add first, then normalise.",
)
def residual_after_the_norm(x, output, gain, bias):
    return x + gain * normalised(output) + bias


@BANK.mistake(
    "x is normalised before the sum, and the sum is not.",
    "Add first, then normalise the sum.",
)
def only_x_normalised(x, output, gain, bias):
    return gain * normalised(x) + bias + output


@BANK.mistake(
    "The gain and the bias are missing: every row has mean 0 and size √d_model, and the layer "
    "cannot learn another.",
    "Multiply by `gain` and add `bias`, after the division.",
)
def without_gain_and_bias(x, output, gain, bias):
    return normalised(x + output)


@BANK.mistake("The bias is missing.", "Add `bias` at the end.")
def without_the_bias(x, output, gain, bias):
    return gain * normalised(x + output)


@BANK.mistake(
    "The gain multiplies the bias too.",
    "Multiply first, then add: `gain * rows + bias`.",
)
def gain_on_the_bias(x, output, gain, bias):
    return gain * (normalised(x + output) + bias)


@BANK.mistake(
    "`gain` and `bias` have changed places.",
    "The gain multiplies the rows, and the bias is added: `gain * rows + bias`.",
)
def gain_and_bias_swapped(x, output, gain, bias):
    return bias * normalised(x + output) + gain


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
