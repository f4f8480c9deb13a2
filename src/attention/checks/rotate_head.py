"""check_rotate_head (chapter 10): the rows of one head, each turned by its position."""

from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def rotate_head(x, base=10000.0):
    """x (seq, d_key) -> (seq, d_key)."""
    return interleaved(*turned(*neighbours(x), angles(x, base)))


def angles(x: Tensor, base: float, first: int = 0) -> Tensor:
    """The angle m · θ of every row and pair, (seq, d_key/2)."""
    seq, d_key = x.shape
    theta = base ** (-torch.arange(0, d_key, 2) / d_key)
    return torch.arange(first, first + seq)[:, None] * theta


def neighbours(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[:, 0::2], x[:, 1::2]


def turned(a: Tensor, b: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    return a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()


def interleaved(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack((a, b), dim=-1).flatten(1)


@BANK.mistake(
    "Your pairs are i and i + d_key/2, one component from each half. That is the other convention, "
    "of GPT-NeoX and Hugging Face's Llama. With it, weights that were trained for this one are "
    "another model.",
    "Pair neighbours: `x[:, 0::2]` with `x[:, 1::2]`.",
)
def pairs_from_two_halves(x, base=10000.0):
    a, b = x.chunk(2, dim=-1)
    return torch.cat(turned(a, b, angles(x, base)), dim=-1)


@BANK.mistake(
    "Each pair is turned right, and then put back elsewhere: all first components stand in front, "
    "all second ones behind them.",
    "Put each pair back where it was: `torch.stack((a, b), dim=-1).flatten(1)`, in place of "
    "`torch.cat`.",
)
def put_back_as_halves(x, base=10000.0):
    return torch.cat(turned(*neighbours(x), angles(x, base)), dim=-1)


@BANK.mistake(
    "The rows turn the other way: by −m · θ. A score still depends on the distance, but as if its "
    "sign were changed: a model that was trained with this book's turn would look for keys on the "
    "other side.",
    "The first component becomes a·cos − b·sin, the second a·sin + b·cos.",
)
def turned_the_other_way(x, base=10000.0):
    return interleaved(*turned(*neighbours(x), -angles(x, base)))


@BANK.mistake(
    "The first row is turned already, so your positions start at 1. The scores do not mind, since "
    "distances stay; a row that is compared with a cached one does.",
    "Start at 0: `torch.arange(seq)`. Row 0 comes back as it was.",
)
def positions_from_one(x, base=10000.0):
    return interleaved(*turned(*neighbours(x), angles(x, base, first=1)))


@BANK.mistake(
    "The angles are in degrees, and `cos` and `sin` take radians.",
    "Leave m · θ as it is: pair 0 turns by one radian from row to row.",
)
def degrees(x, base=10000.0):
    return interleaved(*turned(*neighbours(x), torch.rad2deg(angles(x, base))))


@BANK.mistake(
    "The exponent counts pairs, 0, 1, 2, …, and θ = base^(−2i/d_key) has 2i. Your slow pairs turn "
    "too quickly.",
    "Use 0, 2, 4, …: `torch.arange(0, d_key, 2) / d_key`.",
    lambda yours, right, inputs: (
        f"With d_key={inputs['x'].shape[1]}, pair 1 turns by "
        f"{inputs['base'] ** (-2 / inputs['x'].shape[1]):.2g} radians a row, and yours by "
        f"{inputs['base'] ** (-1 / inputs['x'].shape[1]):.2g}."
    ),
)
def exponent_counts_pairs(x, base=10000.0):
    seq, d_key = x.shape
    theta = base ** (-torch.arange(d_key // 2) / d_key)
    return interleaved(*turned(*neighbours(x), torch.arange(seq)[:, None] * theta))


@BANK.mistake(
    "Two mistakes at once. The exponent counts pairs, 0, 1, 2, …, and θ = base^(−2i/d_key) has 2i. "
    "And the pairs are put back elsewhere: all first components in front, all second ones behind "
    "them.",
    "Use `torch.arange(0, d_key, 2) / d_key` for the exponent. And put each pair back where it "
    "was: `torch.stack((a, b), dim=-1).flatten(1)`, in place of `torch.cat`.",
)
def exponent_counts_pairs_and_put_back_as_halves(x, base=10000.0):
    seq, d_key = x.shape
    theta = base ** (-torch.arange(d_key // 2) / d_key)
    return torch.cat(turned(*neighbours(x), torch.arange(seq)[:, None] * theta), dim=-1)


@BANK.mistake(
    "All pairs turn by the same angle, one radian a row. Then a head cannot tell 1 from 7 places "
    "well: after 6.28 rows everything stands as before.",
    "Give pair i its own angle: θ = base^(−2i/d_key).",
)
def one_angle_for_all(x, base=10000.0):
    return interleaved(*turned(*neighbours(x), angles(x, 1.0)))


@BANK.mistake(
    "The base is 10000 whatever is asked for.",
    "Use the argument: `base ** (-torch.arange(0, d_key, 2) / d_key)`.",
)
def base_left_aside(x, base=10000.0):
    return rotate_head(x)


@BANK.mistake(
    "The signs make this a mirror, not a turn. Row 0, at angle 0, must come back as it was, and "
    "its second components change sign.",
    "The one minus belongs to the first component: a·cos − b·sin and a·sin + b·cos.",
)
def a_reflection(x, base=10000.0):
    a, b = neighbours(x)
    angle = angles(x, base)
    return interleaved(a * angle.cos() + b * angle.sin(), a * angle.sin() - b * angle.cos())


@BANK.mistake(
    "The cross terms are missing: each component is multiplied by its cosine, and none by a sine. "
    "That shrinks the pair in place of turning it.",
    "Each new component needs both old ones: a·cos − b·sin and a·sin + b·cos.",
)
def cross_terms_missing(x, base=10000.0):
    a, b = neighbours(x)
    cos = angles(x, base).cos()
    return interleaved(a * cos, b * cos)


@BANK.mistake(
    "The first component has a cosine alone and the second a sine alone. Both new components need "
    "both old ones.",
    "The first component becomes a·cos − b·sin, the second a·sin + b·cos.",
)
def one_term_each(x, base=10000.0):
    a, b = neighbours(x)
    angle = angles(x, base)
    return interleaved(a * angle.cos(), b * angle.sin())


@BANK.mistake(
    "The second component is computed from the first after that was changed. Both need the row as "
    "it came in.",
    "Keep a and b, and compute both new components from them.",
)
def overwritten_on_the_way(x, base=10000.0):
    a, b = neighbours(x)
    angle = angles(x, base)
    a = a * angle.cos() - b * angle.sin()
    return interleaved(a, a * angle.sin() + b * angle.cos())


@BANK.mistake(
    "Sines and cosines are added to the row. Rotary positions turn it: they multiply.",
    "The first component becomes a·cos − b·sin, the second a·sin + b·cos.",
)
def added(x, base=10000.0):
    angle = angles(x, base)
    return x + interleaved(angle.sin(), angle.cos())


def cases(numbers: Numbers) -> list[Case]:
    def case(d_key: int, base: float) -> Case:
        seq = numbers.sizes_from.choice((5, 7, 9))
        return Case({"x": numbers.tensor(seq, d_key), "base": base})

    return [case(4, 10000.0), case(8, 100.0)]


TASK = Task("rotate_head", rotate_head, BANK, cases, {"turned": "seq d_key"})


def check_rotate_head(function: Callable, *, seed: int = 0) -> Result:
    """Check rotate_head(x, base) -> x, each row turned by its position.

    x (seq, d_key), the queries or the keys of one head -> (seq, d_key): components 2i and 2i + 1 of
    row m, a point in the plane, turned by m · base^(−2i/d_key) radians.
    """
    return examine(TASK, function, seed)
