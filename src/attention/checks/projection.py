"""check_projection (chapter 2): x @ w + b."""

from collections.abc import Callable

import torch

from .bank import Bank
from .examining import CHANGING, Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def projection(x, w, b=None):
    """x (batch, seq, d_in), w (d_in, d_out), b (d_out) or None -> (batch, seq, d_out)."""
    return x @ w if b is None else x @ w + b


def ratio(yours, right, inputs):
    return f"Your first number is {yours[0][0, 0, 0]:.2f} instead of {right[0][0, 0, 0]:.2f}."


@BANK.mistake(
    "This is x times w transposed: your rows of x meet rows of w, where they should meet columns.",
    "Here w has the shape (d_in, d_out), so write `x @ w`; in a sum of rows of w take `w[i]`, "
    "since `w[:, i]` is a column. Only `nn.Linear` and `F.linear` keep their weight the other way "
    "round; `F.linear` therefore takes `w.T`.",
)
def transposed(x, w, b=None):
    return x @ w.T if b is None else x @ w.T + b


def missing_bias(yours, right, inputs):
    missing = (right[0] - yours[0])[0, 0, 0]
    return f"In every row your first number is too small by {missing:.2f}, which is b[0]."


@BANK.mistake(
    "The bias is missing: all your rows are off by the same vector, and that vector is b.",
    "Add it to every row: `x @ w + b`.",
    missing_bias,
)
def bias_forgotten(x, w, b=None):
    return x @ w


@BANK.mistake(
    "The bias is added twice: all your rows are off by b.",
    "`F.linear(x, w.T, b)` and `nn.Linear` add it already; add it once.",
)
def bias_twice(x, w, b=None):
    return x @ w if b is None else x @ w + 2 * b


@BANK.mistake(
    "The bias is added d_in times, once with each row of w, so that all your rows are off by "
    "d_in - 1 times b.",
    "Add it once, to the finished sum.",
)
def bias_with_every_row(x, w, b=None):
    return x @ w if b is None else x @ w + w.shape[0] * b


@BANK.mistake(
    "The bias is taken away instead of added: all your rows are off by twice b.",
    "The formula is XW + b: write `x @ w + b`.",
)
def bias_subtracted(x, w, b=None):
    return x @ w if b is None else x @ w - b


@BANK.mistake(
    "The bias is added to the first token only. In the other rows it is missing.",
    "Every token gets it: `x @ w + b` broadcasts b over the batch and the tokens.",
)
def bias_for_the_first_token(x, w, b=None):
    return x @ w if b is None else torch.cat([x[:, :1] @ w + b, x[:, 1:] @ w], dim=1)


@BANK.mistake(
    "The bias is added to the first sentence only. In the others it is missing.",
    "Every token gets it: `x @ w + b` broadcasts b over the batch and the tokens.",
)
def bias_for_the_first_sentence(x, w, b=None):
    return x @ w if b is None else torch.cat([x[:1] @ w + b, x[1:] @ w])


@BANK.mistake(
    "The bias is added to the matrix. Each of your numbers is off by b times the sum of its row.",
    "It belongs to the result: `x @ w + b`.",
)
def bias_in_the_matrix(x, w, b=None):
    return x @ w if b is None else x @ (w + b)


@BANK.mistake(
    "The bias is added before the product, so it is projected as well.",
    "It belongs to the result, whose columns it has: `x @ w + b`.",
)
def bias_before_the_product(x, w, b=None):
    return x @ w if b is None else (x + b) @ w


@BANK.mistake(
    "b may be None, for a projection without a bias, and then there is nothing to add.",
    "Ask first: `if b is not None`.",
)
def always_a_bias(x, w, b=None):
    return x @ w + b


@BANK.mistake(
    "`if b:` asks a whole tensor whether it is true, and it cannot say.",
    "You want to know whether there is a bias at all: `if b is not None`.",
)
def bias_asked_for_its_truth(x, w, b=None):
    return x @ w + b if b else x @ w


@BANK.mistake(
    "`*` multiplies entry by entry. A projection takes dot products of rows with columns.",
    "The matrix product is `@`: `x @ w`.",
)
def entry_by_entry(x, w, b=None):
    return x * w


@BANK.mistake(
    "One number of each token was taken, as by `x[..., i]`, and the last axis went with it: "
    "(batch, seq) is left, so that a row of w meets the tokens.",
    "Keep the last axis, with size 1: `x[..., i : i + 1] * w[i]` is (batch, seq, d_out), and so is "
    "`x[..., i, None] * w[i]`.",
)
def last_axis_lost(x, w, b=None):
    return sum(x[..., i] * w[i] for i in range(w.shape[0]))


@BANK.mistake(
    "What you add to is d_in numbers wide, as x is, and d_out numbers come out for each token. The "
    "two agree only where w is square.",
    "Take the width from w, `torch.zeros(*x.shape[:-1], w.shape[1])`, or start from 0.",
)
def as_wide_as_x(x, w, b=None):
    projected = torch.zeros(x.shape)
    for i in range(w.shape[0]):
        projected = projected + x[..., i, None] * w[i]
    return projected if b is None else projected + b


@BANK.mistake(
    "The factors are swapped: in a matrix product the order counts.",
    "The rows of x meet the columns of w, so x stands on the left: `x @ w`.",
)
def factors_swapped(x, w, b=None):
    return w @ x


@BANK.mistake(
    "This projects the first sentence of the batch alone.",
    "`x @ w` uses w again for each sentence; no index and no loop is needed.",
)
def first_sentence_only(x, w, b=None):
    return projection(x[0], w, b)


@BANK.mistake(
    "The sentences lie under each other in one matrix, and the axis of the batch is gone.",
    "`x @ w` keeps all axes of x but the last. If you flatten, restore the axes: "
    "`.view(batch, seq, -1)`.",
)
def batch_flattened(x, w, b=None):
    return projection(x.flatten(0, 1), w, b)


@BANK.mistake(
    "The tokens of a sentence are averaged. A projection treats each token by itself; tokens meet "
    "only in the scores.",
    "Leave the token axis alone: `x @ w + b`.",
)
def tokens_averaged(x, w, b=None):
    return projection(x.mean(dim=1), w, b)


@BANK.mistake(
    "There is a relu behind the product: your negative numbers have become 0. Queries, keys and "
    "values are a linear function of x, of either sign.",
    "Return `x @ w + b` as it is.",
    lambda yours, right, inputs: (
        f"{int((yours[0] == 0).sum())} of your {yours[0].numel()} numbers are 0."
    ),
)
def relu_behind(x, w, b=None):
    return projection(x, w, b).relu()


@BANK.mistake(
    "There is a softmax behind the product: your rows sum to 1. The softmax comes later, over the "
    "scores of a query.",
    "Return `x @ w + b` as it is.",
)
def softmax_behind(x, w, b=None):
    return projection(x, w, b).softmax(dim=-1)


@BANK.mistake(
    "Your result is divided by the square root of its width. The division belongs to the scores, "
    "not to the projection.",
    "Return `x @ w + b` as it is.",
    ratio,
)
def scaled(x, w, b=None):
    return projection(x, w, b) / w.shape[1] ** 0.5


def cases(numbers: Numbers) -> list[Case]:
    batch, seq, d_model = numbers.sizes(3)
    # A square w, as the book's are: a wrong transpose raises no error here.
    square = {"x": numbers.tensor(batch, seq, d_model), "w": numbers.tensor(d_model, d_model)}
    batch, seq, d_in, d_out = numbers.sizes(4)
    wide = {"x": numbers.tensor(batch, seq, d_in), "w": numbers.tensor(d_in, d_out)}
    return [
        Case({**square, "b": numbers.tensor(d_model)}),
        Case({**wide, "b": numbers.tensor(d_out)}),
        Case({**wide, "b": None}),
        Case({**wide, "x": numbers.tensor(1, seq, d_in), "b": numbers.tensor(d_out)}),
    ]


TASK = Task(
    "projection",
    projection,
    BANK,
    cases,
    {"result": "batch seq d_out"},
    f"{CHANGING} Here w and b hold all the weights there are: make no `nn.Linear` inside.",
)


def check_projection(function: Callable, *, seed: int = 0) -> Result:
    """Check projection(x, w, b=None): every token's row times w, plus b.

    x (batch, seq, d_in), w (d_in, d_out), b (d_out) or None -> (batch, seq, d_out). The matrix is
    as in chapter 2, one column for each number that comes out, and not transposed as in nn.Linear.
    """
    return examine(TASK, function, seed)
