"""check_receptive_field (chapter 17): what each token can have heard of after some layers."""

from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()


def receptive_field(mask, n_layers):
    """mask (query, key) boolean -> (token, source) boolean."""
    return after(hears(mask), n_layers)


def hears(mask: Tensor) -> Tensor:
    """What one layer brings to each token: what it sees, and its own row, which is kept."""
    return mask | torch.eye(len(mask), dtype=torch.bool)


def after(layer: Tensor, n_layers: int) -> Tensor:
    """True where a walk of n_layers steps leads from the token to the source."""
    heard = torch.eye(len(layer), dtype=torch.bool)
    for _ in range(n_layers):
        heard = (layer.double() @ heard.double()) > 0
    return heard


def entries(yours, right, inputs):
    said = int(yours[0].bool().sum())
    return f"Yours has {said} pairs of a token and a source, and there are {int(right[0].sum())}."


@BANK.mistake(
    "This is what one layer brings. A second layer brings what those tokens have heard of.",
    "Repeat it n_layers times: a token hears of all that any token it sees has heard of.",
    entries,
)
def one_layer(mask, n_layers):
    return hears(mask)


@BANK.mistake(
    "One layer too few. Before any layer a token knows itself alone, and the first layer brings "
    "what it sees.",
    "Begin with the identity, and take n_layers steps.",
    entries,
)
def a_layer_too_few(mask, n_layers):
    return after(hears(mask), n_layers - 1)


@BANK.mistake(
    "One layer too many. The mask itself is one layer already.",
    "Begin with the identity, and take n_layers steps; or begin with the mask, and take one fewer.",
    entries,
)
def a_layer_too_many(mask, n_layers):
    return after(hears(mask), n_layers + 1)


@BANK.mistake(
    "A token forgets what it knew: this takes exactly n_layers steps through the mask alone, so "
    "that a token that does not see itself loses its own row. A layer adds to the row that enters "
    "it, and what was there stays.",
    "Put the diagonal into the mask before the first step: `mask | torch.eye(…)`.",
    entries,
)
def without_the_row_itself(mask, n_layers):
    return after(mask, n_layers)


@BANK.mistake(
    "The token itself is added once, at the end. It must be added in every layer: otherwise what "
    "it heard of in the first layer is gone after the second.",
    "Put the diagonal into the mask before the first step: `mask | torch.eye(…)`.",
    entries,
)
def the_row_itself_once(mask, n_layers):
    return hears(after(mask, n_layers))


@BANK.mistake(
    "These are numbers, not yes or no: in how many ways the information can come. They grow with "
    "every layer.",
    "Say whether there is any: `> 0` at the end.",
)
def counted(mask, n_layers):
    return torch.linalg.matrix_power(hears(mask).double(), n_layers)


OVERFLOW = (
    "Your counts left the range of float32: they grow with every layer, to infinity, and infinity "
    "times 0 is NaN. `NaN > 0` is False, and NaN as a boolean is True.",
    "Ask for `> 0` after every layer, and go on with ones and zeros.",
)


def ways_in_float32(mask, n_layers):
    ways = torch.eye(len(mask))
    for _ in range(n_layers):
        ways = ways @ hears(mask).float()
    return ways


def power_in_float32(mask, n_layers):
    return torch.linalg.matrix_power(hears(mask).float(), n_layers)


@BANK.mistake(*OVERFLOW)
def asked_at_the_end(mask, n_layers):
    return ways_in_float32(mask, n_layers) > 0


@BANK.mistake(*OVERFLOW)
def boolean_at_the_end(mask, n_layers):
    return ways_in_float32(mask, n_layers).bool()


@BANK.mistake(*OVERFLOW)
def a_power_above_zero(mask, n_layers):
    return power_in_float32(mask, n_layers) > 0


@BANK.mistake(*OVERFLOW)
def a_power_as_boolean(mask, n_layers):
    return power_in_float32(mask, n_layers).bool()


@BANK.mistake(
    "`mask ** n_layers` raises every entry to that power, and 1 stays 1: it is the mask again, as "
    "if there were one layer, and without the token itself.",
    "Multiply matrices: `torch.linalg.matrix_power`, or `@` in a loop.",
    entries,
)
def every_entry_to_the_power(mask, n_layers):
    return (mask.double() ** n_layers) > 0


@BANK.mistake(
    "Rows and columns have changed places: your row i holds who has heard of token i, and should "
    "hold of whom token i has heard.",
    "The mask is (query, key), and the one who hears is the query. Leave it in the rows.",
)
def turned(mask, n_layers):
    return receptive_field(mask, n_layers).T


@BANK.mistake(
    "The result is multiplied by itself. That doubles the layers at each step, 2 to the power of "
    "n_layers of them.",
    "Multiply by the mask of one layer each time.",
    entries,
)
def doubled(mask, n_layers):
    heard = hears(mask)
    for _ in range(n_layers):
        heard = (heard.double() @ heard.double()) > 0
    return heard


@BANK.mistake(
    "Your information goes both ways: where a token sees another one, the other one hears of it "
    "too. Attention goes one way, from the key to the query.",
    "Leave out the transpose: `mask[query, key]` says that the query hears of the key.",
    entries,
)
def both_ways(mask, n_layers):
    return after(hears(mask | mask.T), n_layers)


@BANK.mistake(
    "You go on until nothing changes. That is what any number of layers could bring, and "
    "n_layers is not used.",
    "Stop after n_layers steps.",
    entries,
)
def as_many_layers_as_it_takes(mask, n_layers):
    return after(hears(mask), len(mask))


@BANK.mistake(
    "torch multiplies no boolean matrices on this processor.",
    "Turn the mask into numbers first, `mask.double()`, and ask for `> 0` after the product.",
)
def booleans_multiplied(mask, n_layers):
    return torch.linalg.matrix_power(hears(mask), n_layers)


def cases(numbers: Numbers) -> list[Case]:
    seq = 20 + numbers.sizes(1)[0]
    near, far = sorted(numbers.sizes_from.sample((2, 3, 4, 5), 2))
    distance = torch.arange(seq)[:, None] - torch.arange(seq)
    # Two keys before the query, and not itself: no token sees back to where it is seen from.
    two_keys = (distance == near) | (distance == far)
    window = (distance >= 0) & (distance <= near)
    # Neighbours on both sides; the second half sees the first, and not the other way round, and the
    # last token is alone. After so many layers the ways are too many for float32.
    second, alone = torch.arange(seq) >= seq // 2, torch.arange(seq) == seq - 1
    both_sides = (distance.abs() <= near) & (second[:, None] >= second)
    both_sides &= alone[:, None] == alone
    return [
        Case({"mask": two_keys, "n_layers": 3}),
        Case({"mask": window, "n_layers": 2}),
        Case({"mask": two_keys, "n_layers": 2}),
        Case({"mask": both_sides, "n_layers": 125}),
    ]


TASK = Task("receptive_field", receptive_field, BANK, cases, {"heard": "token source"})


def check_receptive_field(function: Callable, *, seed: int = 0) -> Result:
    """Check receptive_field(mask, n_layers) -> of which tokens each token can have heard.

    mask (query, key), boolean, True = may attend, the same in every layer; each layer adds to the
    row that enters it. Returned is (token, source), boolean, the token itself included.
    """
    return examine(TASK, function, seed)
