"""check_join_parts (chapter 16): two partial results of a softmax, joined to one."""

from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def join_parts(max_a, sum_a, out_a, max_b, sum_b, out_b):
    """max and sum (query,), out (query, d_value) of two parts -> the same three of both."""
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    return maximum, a + b, average(a, out_a, b, out_b)


def rescaled(
    max_a: Tensor, sum_a: Tensor, max_b: Tensor, sum_b: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The larger maximum, and both sums relative to it."""
    factor_a, factor_b = factors(max_a, max_b)
    return torch.maximum(max_a, max_b), sum_a * factor_a, sum_b * factor_b


def factors(max_a: Tensor, max_b: Tensor) -> tuple[Tensor, Tensor]:
    """What makes the numbers of each part relative to the larger maximum."""
    reference = finite(torch.maximum(max_a, max_b))
    return (max_a - reference).exp(), (max_b - reference).exp()


def finite(maximum: Tensor) -> Tensor:
    """0 where nothing was visible: -inf - (-inf) would be NaN."""
    return maximum.masked_fill(maximum == -torch.inf, 0.0)


def average(a: Tensor, out_a: Tensor, b: Tensor, out_b: Tensor) -> Tensor:
    """The outputs, weighted by a and b; 0 where both are 0."""
    return weighted_sum(a, out_a, b, out_b) / divisor(a + b)[:, None]


def weighted_sum(a: Tensor, out_a: Tensor, b: Tensor, out_b: Tensor) -> Tensor:
    return a[:, None] * out_a + b[:, None] * out_b


def divisor(total: Tensor) -> Tensor:
    return total.masked_fill(total == 0.0, 1.0)


@BANK.mistake(
    "Your sums are added as they came. Each is relative to the maximum of its own part, so they "
    "are not in the same unit.",
    "Bring both to the larger maximum first: multiply each sum by exp(its old maximum − the new "
    "one).",
    lambda yours, right, inputs: (
        f"In row 0 the maxima are {inputs['max_a'][0]:.2f} and {inputs['max_b'][0]:.2f}."
    ),
)
def not_rescaled(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum = torch.maximum(max_a, max_b)
    return maximum, sum_a + sum_b, average(sum_a, out_a, sum_b, out_b)


@BANK.mistake(
    "The correction has the wrong sign: exp(new maximum − old one). It makes the part with the "
    "smaller maximum larger, where it must shrink.",
    "Multiply by exp(old maximum − new one), which is 1 at most.",
    lambda yours, right, inputs: (
        f"Your sum of row 0 is {yours[1][0]:.2f}; the two sums that it is made of are "
        f"{inputs['sum_a'][0]:.2f} and {inputs['sum_b'][0]:.2f}, and neither may grow."
        if len(yours) > 1
        else "Neither sum may grow."
    ),
)
def wrong_sign(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum = torch.maximum(max_a, max_b)
    a = sum_a * (finite(maximum) - finite(max_a)).exp()
    b = sum_b * (finite(maximum) - finite(max_b)).exp()
    return maximum, a + b, average(a, out_a, b, out_b)


@BANK.mistake(
    "Your output is the plain average of the two. That is right only where both parts have the "
    "same sum of weights.",
    "Weight each output by its corrected sum, and divide by the sum of both.",
)
def averaged(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    return maximum, a + b, (out_a + out_b) / 2


@BANK.mistake(
    "Your outputs are added, each scaled by its own maximum and not by its sum. `out_a` is a "
    "result that was divided by `sum_a` already: as it stands, a part of one key counts as much "
    "as a part of a thousand.",
    "Multiply each output by its sum as well, which undoes the division: "
    "`sum_a * (max_a - maximum).exp()`.",
)
def taken_as_undivided(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    factor_a, factor_b = factors(max_a, max_b)
    parts = weighted_sum(factor_a, out_a, factor_b, out_b)
    return maximum, a + b, parts / divisor(a + b)[:, None]


@BANK.mistake(
    "The sums are missing from your output: it is an average whose weights are the two factors "
    "alone, so a part of one key counts as much as a part of a thousand.",
    "Multiply each factor by its sum: `sum_a * (max_a - maximum).exp()`, and so for b.",
)
def averaged_by_factors(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    factor_a, factor_b = factors(max_a, max_b)
    return maximum, a + b, average(factor_a, out_a, factor_b, out_b)


@BANK.mistake(
    "The sums are missing from your output: each part is scaled by its factor alone, and nothing "
    "is divided.",
    "Weight each part by `sum_a * (max_a - maximum).exp()`, and so for b, and divide by the sum of "
    "these two.",
)
def added_by_factors(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    factor_a, factor_b = factors(max_a, max_b)
    return maximum, a + b, weighted_sum(factor_a, out_a, factor_b, out_b)


@BANK.mistake(
    "The output is not divided at the end: it is a weighted sum of values, not their average.",
    "Divide by the new sum: `/ total[:, None]`.",
)
def not_divided(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    return maximum, a + b, a[:, None] * out_a + b[:, None] * out_b


@BANK.mistake(
    "Everything is relative to the maximum of part a, also where that of part b is larger. The "
    "output is right on these numbers. With scores some 90 apart exp would overflow in float32.",
    "Take the larger of the two: `torch.maximum(max_a, max_b)`.",
)
def maximum_of_a(max_a, sum_a, out_a, max_b, sum_b, out_b):
    reference = finite(max_a)
    a, b = sum_a * (max_a - reference).exp(), sum_b * (max_b - reference).exp()
    return max_a, a + b, average(a, out_a, b, out_b)


@BANK.mistake(
    "This is the smaller of the two maxima. exp(old maximum − new one) is then larger than 1, and "
    "overflows where the scores are far apart.",
    "Take the larger of the two: `torch.maximum(max_a, max_b)`.",
)
def the_smaller_maximum(max_a, sum_a, out_a, max_b, sum_b, out_b):
    smaller = torch.minimum(max_a, max_b)
    reference = finite(smaller)
    a, b = sum_a * (max_a - reference).exp(), sum_b * (max_b - reference).exp()
    return smaller, a + b, average(a, out_a, b, out_b)


@BANK.mistake(
    "No maximum is subtracted: your sum is relative to 0, and does not belong to the maximum that "
    "you return beside it. The output is right on these numbers. With a score of 100 exp would "
    "overflow in float32.",
    "Subtract the new maximum: `sum_a * (max_a - maximum).exp()`, and so for b.",
)
def nothing_subtracted(max_a, sum_a, out_a, max_b, sum_b, out_b):
    a, b = sum_a * max_a.exp(), sum_b * max_b.exp()
    return torch.maximum(max_a, max_b), a + b, average(a, out_a, b, out_b)


@BANK.mistake(
    "Part a is corrected with the maximum of part b, and part b with that of part a.",
    "Each part gets its own factor: exp(its own maximum − the new one).",
)
def factors_swapped(max_a, sum_a, out_a, max_b, sum_b, out_b):
    factor_a, factor_b = factors(max_a, max_b)
    a, b = sum_a * factor_b, sum_b * factor_a
    return torch.maximum(max_a, max_b), a + b, average(a, out_a, b, out_b)


@BANK.mistake(
    "The sum is corrected, and the outputs are weighted with the old sums. The two must be "
    "corrected with the same factors, or the weights behind your output do not sum to 1.",
    "Use the corrected sums for the output too.",
)
def outputs_left_behind(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    old = sum_a[:, None] * out_a + sum_b[:, None] * out_b
    return maximum, a + b, old / divisor(a + b)[:, None]


@BANK.mistake(
    "A query to which neither part shows a key gets NaN: its maximum is −inf, and −inf − (−inf) is "
    "NaN. One such row in a batch and the loss is NaN.",
    "Subtract 0 where the new maximum is −inf, and divide by 1 where the sum is 0: then the row "
    "gets sum 0 and output 0, as elsewhere in this book.",
)
def nan_where_nothing_is_visible(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum = torch.maximum(max_a, max_b)
    a, b = sum_a * (max_a - maximum).exp(), sum_b * (max_b - maximum).exp()
    total = a + b
    return maximum, total, (a[:, None] * out_a + b[:, None] * out_b) / total[:, None]


@BANK.mistake(
    "A query to which neither part shows a key gets NaN in its output alone: its sum is 0, and 0 / "
    "0 is NaN.",
    "Divide by 1 where the sum is 0: `total.masked_fill(total == 0, 1.0)`.",
)
def nought_by_nought(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    return maximum, a + b, (a[:, None] * out_a + b[:, None] * out_b) / (a + b)[:, None]


@BANK.mistake(
    "Where neither part shows a key, your maximum is the lowest finite number. The sum and the "
    "output are right, and the maximum of no scores is −inf, as in the parts that came in.",
    "Use the finite number only to subtract it, and return `torch.maximum(max_a, max_b)`.",
)
def lowest_where_nothing_is_visible(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum = torch.maximum(max_a, max_b).nan_to_num()
    a, b = sum_a * (max_a - maximum).exp(), sum_b * (max_b - maximum).exp()
    return maximum, a + b, average(a, out_a, b, out_b)


@BANK.mistake(
    "Where neither part shows a key, your maximum is 0. The sum and the output are right. But join "
    "a third part whose scores are near −110: measured against that 0 its weights vanish, and its "
    "output with them.",
    "Use the 0 only to subtract it, and return `torch.maximum(max_a, max_b)`.",
)
def nought_where_nothing_is_visible(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, a, b = rescaled(max_a, sum_a, max_b, sum_b)
    return finite(maximum), a + b, average(a, out_a, b, out_b)


@BANK.mistake(
    "A NaN that comes in is replaced by 0, for instance by `nan_to_num`. A value was NaN, and "
    "your output hides it: the error goes on as a number that looks right.",
    "Replace only what no key causes: subtract 0 where the new maximum is −inf, and divide by 1 "
    "where the sum is 0. Leave every other NaN as it is.",
)
def every_nan_replaced(max_a, sum_a, out_a, max_b, sum_b, out_b):
    maximum, total, output = join_parts(max_a, sum_a, out_a, max_b, sum_b, out_b)
    return maximum, total, output.nan_to_num()


def cases(numbers: Numbers) -> list[Case]:
    def case(*, hidden: bool) -> Case:
        queries, d_value = numbers.sizes(2, least=3)
        parts = {}
        for part in "ab":
            parts |= {
                f"max_{part}": 2 * numbers.tensor(queries),
                f"sum_{part}": 1 + numbers.tensor(queries).abs(),  # the largest weighs 1
                f"out_{part}": numbers.tensor(queries, d_value),
            }
        if hidden:  # nothing of part a to query 0, nothing of part b to 1, nothing at all to 2
            for part, rows in (("a", [0, 2]), ("b", [1, 2])):
                parts[f"max_{part}"][rows] = -torch.inf
                parts[f"sum_{part}"][rows] = 0.0
                parts[f"out_{part}"][rows] = 0.0
        return Case(parts)

    drawn = [case(hidden=False), case(hidden=True), case(hidden=False)]
    drawn[2].inputs["out_a"][0, 0] = torch.nan  # of a value that was NaN
    return drawn


TASK = Task(
    "join_parts",
    join_parts,
    BANK,
    cases,
    {"maximum": "query", "total": "query", "output": "query d_value"},
)


def check_join_parts(function: Callable, *, seed: int = 0) -> Result:
    """Check join_parts(max_a, sum_a, out_a, max_b, sum_b, out_b) -> (maximum, total, output).

    Each part has seen some of the keys. max (query,) is its largest score, sum (query,) the sum of
    its exp(score − max), out (query, d_value) its own attention output. A part that shows a query
    no key has max −inf, sum 0 and out 0 there. Returned are the same three of all keys.
    """
    return examine(TASK, function, seed)
