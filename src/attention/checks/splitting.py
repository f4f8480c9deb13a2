"""check_split_heads (chapter 3): (batch, seq, d_model) -> (batch, heads, seq, d_key)."""

from collections.abc import Callable

import torch

from attention.heads import split_heads

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
RIGHT_WAY = "`x.view(batch, seq, n_heads, d_key).transpose(1, 2)`"
RIGHT_SLICE = "`x[:, :, h * d_key : (h + 1) * d_key]`"
EITHER_WAY = f"{RIGHT_WAY}, or `torch.stack` with dim=1 of a slice {RIGHT_SLICE} for each head h"
FLOAT_D_KEY = (
    "`/` makes a float, even where nothing is left over, and sizes, strides, slices and ranges "
    "take ints.",
    "Divide with `//`: `d_key = d_model // n_heads`.",
)
STRIDES_OF_THE_EXAMPLE = (
    "(48, 4, 8, 1) are the strides of the running example, 6 tokens of 8 numbers in 2 heads. This "
    "x has other sizes.",
    "Compute them: `sentence, token, component = x.stride()`, and from a head to the next it is "
    "`d_key * component`. The size comes from `x.shape` and n_heads.",
)


def row_of_head_0(yours, right, inputs):
    """Where in x a row of head 0 comes from, for mistakes that only move numbers."""
    places = [(inputs["x"][0] == number).nonzero()[0].tolist() for number in yours[0][0, 0, 1]]
    row = ", ".join(f"x[0, {token}, {column}]" for token, column in places)
    return f"Your row [0, 0, 1], head 0 of token 1, holds {row}."


@BANK.mistake(
    "This is what a `view` straight to (batch, heads, seq, d_key) gives: the shape is right, but a "
    "head is a stretch of memory and not a group of columns, so that tokens are mixed.",
    f"Cut the heads out of the last axis first, then move their axis forward: {RIGHT_WAY}.",
    row_of_head_0,
)
def viewed_straight(x, n_heads):
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq, d_model // n_heads)


@BANK.mistake(
    "The axes of heads and tokens have not changed places: your result is (batch, seq, heads, "
    "d_key), and a product of two such tensors would compare heads instead of tokens.",
    "The heads are axis 1: add `.transpose(1, 2)`, or stack with `torch.stack(parts, dim=1)`.",
)
def not_transposed(x, n_heads):
    return split_heads(x, n_heads).transpose(1, 2)


@BANK.mistake(
    "The columns are dealt out like cards: your head 0 has columns 0, n_heads, 2 · n_heads and so "
    "on. Head h owns the d_key columns that lie next to each other from h · d_key on.",
    f"In a `view` the axis of heads comes before that of d_key, {RIGHT_WAY}; as a slice, head h is "
    f"{RIGHT_SLICE}.",
    row_of_head_0,
)
def interleaved(x, n_heads):
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, d_model // n_heads, n_heads).permute(0, 3, 1, 2)


@BANK.mistake(
    "n_heads and d_key have changed roles: you have d_key heads of n_heads columns each.",
    "`view(batch, seq, n_heads, d_key)`; with torch's own functions it is `x.chunk(n_heads, -1)`, "
    "since `x.split(n_heads, -1)` makes parts that are n_heads wide.",
    lambda yours, right, inputs: (
        f"Your result has {yours[0].shape[1]} heads instead of {right[0].shape[1]}."
    ),
)
def roles_swapped(x, n_heads):
    return split_heads(x, x.shape[-1] // n_heads)


@BANK.mistake(
    "This turns the matrix first and cuts it afterwards: after `transpose(1, 2)` the rows are "
    "columns of x, and the numbers of one token no longer lie together.",
    f"Cut first, then transpose: {RIGHT_WAY}.",
    row_of_head_0,
)
def transposed_before_the_view(x, n_heads):
    batch, seq, d_model = x.shape
    return x.transpose(1, 2).reshape(batch, n_heads, seq, d_model // n_heads)


@BANK.mistake(
    "Each head is transposed: you have (batch, heads, d_key, seq), the way in which keys are "
    "needed later, in the product with the queries.",
    f"Splitting leaves the last axis where it is: {RIGHT_WAY}.",
)
def heads_transposed(x, n_heads):
    return split_heads(x, n_heads).transpose(2, 3)


@BANK.mistake(
    "The heads are in front of the batch.",
    "The batch stays axis 0: `torch.stack(parts, dim=1)` instead of dim=0, or `.transpose(1, 2)` "
    "after the view.",
)
def heads_first(x, n_heads):
    return split_heads(x, n_heads).transpose(0, 1)


@BANK.mistake(
    "The tokens are shared out among the heads instead of the columns. Every head sees every "
    "token, in d_key columns of its own.",
    f"Cut the last axis: {EITHER_WAY}.",
)
def tokens_cut(x, n_heads):
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq // n_heads, d_model)


@BANK.mistake(
    "Batch and heads lie in one axis of batch · heads. The products would work, but a mask for "
    "each sentence no longer fits.",
    "Keep four axes: leave out the last reshape.",
)
def batch_and_heads_joined(x, n_heads):
    return split_heads(x, n_heads).flatten(0, 1)


@BANK.mistake(
    "The heads are joined along the batch: (heads · batch, seq, d_key), without an axis of heads.",
    "`torch.cat` joins along an axis that is there. `torch.stack(parts, dim=1)` makes a new one.",
)
def joined_along_the_batch(x, n_heads):
    return torch.cat(x.chunk(n_heads, dim=-1))


@BANK.mistake(
    "The heads are joined along the tokens: (batch, heads · seq, d_key), without an axis of heads.",
    "`torch.cat` joins along an axis that is there. `torch.stack(parts, dim=1)` makes a new one.",
)
def joined_along_the_tokens(x, n_heads):
    return torch.cat(x.chunk(n_heads, dim=-1), dim=1)


@BANK.mistake(
    "This is x as it came: the heads lie side by side in the last axis, as they did before.",
    "They need an axis of their own. `torch.cat` joins along an axis that is there, and "
    "`torch.stack(parts, dim=1)` makes a new one.",
)
def joined_again(x, n_heads):
    return torch.cat(x.chunk(n_heads, dim=-1), dim=-1)


@BANK.mistake(
    "Every head gets all columns of x. Heads share them out: d_key = d_model / n_heads each.",
    f"Cut the last axis instead of repeating it: {EITHER_WAY}.",
)
def every_head_has_all(x, n_heads):
    return x[:, None].repeat(1, n_heads, 1, 1)


@BANK.mistake(
    "This is head 0 alone.",
    f"All heads stand side by side on an axis of their own: {EITHER_WAY}.",
)
def first_head_only(x, n_heads):
    return split_heads(x, n_heads)[:, 0]


@BANK.mistake(*FLOAT_D_KEY)
def d_key_as_a_float(x, n_heads):
    batch, seq, d_model = x.shape
    return x.view(batch, seq, n_heads, d_model / n_heads)


@BANK.mistake(*FLOAT_D_KEY)
def slices_of_a_float(x, n_heads):
    return x[:, :, : x.shape[-1] / n_heads]


@BANK.mistake(*FLOAT_D_KEY)
def range_of_a_float(x, n_heads):
    return [x[:, :, start:] for start in range(0, x.shape[-1], x.shape[-1] / n_heads)]


@BANK.mistake(*FLOAT_D_KEY)
def parts_of_a_float(x, n_heads):
    return torch.stack(x.split(x.shape[-1] / n_heads, dim=-1), dim=1)


@BANK.mistake(*FLOAT_D_KEY)
def strides_of_a_float(x, n_heads):
    batch, seq, d_model = x.shape
    d_key, (sentence, token, component) = d_model / n_heads, x.stride()
    size, stride = (batch, n_heads, seq, d_key), (sentence, d_key * component, token, component)
    return torch.as_strided(x, size, stride)


@BANK.mistake(*STRIDES_OF_THE_EXAMPLE)
def strides_of_the_example(x, n_heads):
    batch, seq, d_model = x.shape
    return torch.as_strided(x, (batch, n_heads, seq, d_model // n_heads), (48, 4, 8, 1))


@BANK.mistake(*STRIDES_OF_THE_EXAMPLE)
def size_and_strides_of_the_example(x, n_heads):
    return torch.as_strided(x, (3, 2, 6, 4), (48, 4, 8, 1))


@BANK.mistake(
    "The last axis is averaged over the columns of a head, so that one number is left of d_key.",
    f"Splitting computes nothing, it only reads x in another way: {RIGHT_WAY}.",
)
def columns_averaged(x, n_heads):
    return split_heads(x, n_heads).mean(dim=-1, keepdim=True)


@BANK.mistake(
    "The heads are in the wrong order: your head 0 owns the last columns.",
    "Head h owns the columns from h · d_key on.",
    row_of_head_0,
)
def heads_reversed(x, n_heads):
    return split_heads(x, n_heads).flip(1)


def cases(numbers: Numbers) -> list[Case]:
    batch, seq, n_heads, d_key = numbers.sizes(4)
    other_batch, many_heads, other_d_key = numbers.sizes(3, least=3)

    def case(batch, seq, n_heads, d_key):
        return Case({"x": numbers.tensor(batch, seq, n_heads * d_key), "n_heads": n_heads})

    return [
        case(batch, seq, n_heads, d_key),
        # Twice as many tokens as heads: here cutting the tokens raises no error.
        case(other_batch, 2 * many_heads, many_heads, other_d_key),
        case(1, seq, n_heads, d_key),
    ]


TASK = Task("split_heads", split_heads, BANK, cases, {"result": "batch heads seq d_key"})


def check_split_heads(function: Callable, *, seed: int = 0) -> Result:
    """Check split_heads(x, n_heads): x (batch, seq, d_model) -> (batch, n_heads, seq, d_key)."""
    return examine(TASK, function, seed)
