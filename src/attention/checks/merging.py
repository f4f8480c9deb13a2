"""check_merge_heads (chapter 6): (batch, heads, seq, d_key) -> (batch, seq, d_model)."""

from collections.abc import Callable

import torch

from attention.heads import merge_heads

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
RIGHT_WAY = "`x.transpose(1, 2).reshape(batch, seq, heads * d_key)`"


def row_of(yours, right, inputs):
    """Whose numbers stand in the row of token 0, for mistakes that only move numbers."""
    x = inputs["x"][0]
    places = [(x == number).nonzero()[0].tolist() for number in yours[0][0, 0].tolist()]
    heads = sorted({head for head, _, _ in places})
    tokens = sorted({token for _, token, _ in places})
    return (
        f"Your row for token 0 holds numbers of {named('token', tokens)}, from "
        f"{named('head', heads)}; it must hold token 0's, from every head."
    )


def named(noun: str, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    return f"{noun}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


@BANK.mistake(
    "This is a merge without the transpose: the shape is right, but each row is a stretch of "
    "memory, over several tokens of a head. Under a causal mask this leaks the future. A model "
    "trained so still learns a part of its task: the book's, one of its two questions.",
    f"Bring the heads of a token together first: {RIGHT_WAY}.",
    row_of,
)
def not_transposed(x):
    batch, heads, seq, d_key = x.shape
    return x.reshape(batch, seq, heads * d_key)


@BANK.mistake(
    "`view` changes no memory, and after a transpose the numbers of a token do not lie next to "
    "each other.",
    "Copy them: `.contiguous()` before the `view`, or `reshape`, which copies where it must.",
)
def viewed_after_the_transpose(x):
    batch, heads, seq, d_key = x.shape
    return x.transpose(1, 2).view(batch, seq, heads * d_key)


@BANK.mistake(
    "The heads of a token are shuffled into each other like cards, number by number. Head 0's "
    "d_key numbers come first, then those of head 1.",
    f"Before the reshape the last two axes are (heads, d_key): {RIGHT_WAY}.",
)
def interleaved(x):
    return x.permute(0, 2, 3, 1).flatten(2)


@BANK.mistake(
    "The wrong two axes are transposed: d_key changed places with the tokens, so that your rows "
    "run across tokens.",
    f"Heads and tokens change places, axes 1 and 2: {RIGHT_WAY}.",
    row_of,
)
def wrong_axes(x):
    batch, heads, seq, d_key = x.shape
    return x.transpose(2, 3).reshape(batch, seq, heads * d_key)


@BANK.mistake(
    "The heads are averaged. That leaves d_key columns, and what one head found is lost among the "
    "others.",
    f"Lay the heads side by side instead: {RIGHT_WAY}.",
)
def averaged(x):
    return x.mean(dim=1)


@BANK.mistake(
    "The heads are added up. That leaves d_key columns, and nobody can tell the heads apart.",
    "Give each head heads * d_key columns first, with zeros in all but its own; then the sum lays "
    f"them side by side. Without a sum: {RIGHT_WAY}.",
)
def added_up(x):
    return x.sum(dim=1)


@BANK.mistake(
    "The heads lie one below the other: heads · seq rows of d_key numbers.",
    f"They belong side by side, along the columns: `torch.cat(heads, dim=-1)`, or {RIGHT_WAY}.",
)
def below_each_other(x):
    return x.flatten(1, 2)


@BANK.mistake(
    "Heads and tokens have changed places, and the heads are still on an axis of their own.",
    "The reshape to (batch, seq, heads · d_key) is missing.",
)
def not_joined(x):
    return x.transpose(1, 2)


@BANK.mistake(
    "This is head 0 alone.",
    f"Every head brings its d_key columns: {RIGHT_WAY}.",
)
def first_head_only(x):
    return x[:, 0]


@BANK.mistake(
    "The tokens are in front of the batch.",
    "The batch stays axis 0: transpose axes 1 and 2 only.",
)
def tokens_first(x):
    return merge_heads(x).transpose(0, 1)


@BANK.mistake(
    "The sentences of the batch are laid side by side, not the heads.",
    "Axis 1 holds the heads: `torch.cat(x.unbind(1), dim=-1)`.",
)
def sentences_joined(x):
    return torch.cat(x.unbind(0), dim=-1)


@BANK.mistake(
    "All tokens of a sentence lie in one row: the token axis is gone.",
    "Join the last two axes only: `.flatten(2)` after the transpose.",
)
def tokens_joined(x):
    return x.transpose(1, 2).flatten(1)


@BANK.mistake(
    "The heads are in the wrong order: the last head's columns come first.",
    f"Head 0 comes first: {RIGHT_WAY}.",
)
def heads_reversed(x):
    return merge_heads(x.flip(1))


def cases(numbers: Numbers) -> list[Case]:
    shapes = [numbers.sizes(4), numbers.sizes(4), [1, *numbers.sizes(3)]]
    return [Case({"x": numbers.tensor(*shape)}) for shape in shapes]


TASK = Task("merge_heads", merge_heads, BANK, cases, {"result": "batch seq d_model"})


def check_merge_heads(function: Callable, *, seed: int = 0) -> Result:
    """Check merge_heads(x): x (batch, heads, seq, d_key) -> (batch, seq, heads · d_key)."""
    return examine(TASK, function, seed)
