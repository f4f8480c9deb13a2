"""check_receptive_field (chapter 17): what each token can have heard of after some layers."""

from collections.abc import Callable

import torch
from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


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


def ways_in_float32(mask, n_layers):
    ways = torch.eye(len(mask))
    for _ in range(n_layers):
        ways = ways @ hears(mask).float()
    return ways


def power_in_float32(mask, n_layers):
    return torch.linalg.matrix_power(hears(mask).float(), n_layers)


BANK = Bank.read(__file__, receptive_field, globals())


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
