"""check_pool_heads (chapter 15): the heads of keys or values, averaged in groups."""

from collections.abc import Callable

from torch import Tensor

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result


def pool_heads(weight, n_heads, n_kv_heads):
    """weight (n_heads · d_key, d_in) -> (n_kv_heads · d_key, d_in)."""
    return by_group(weight, n_heads, n_kv_heads).mean(dim=1).flatten(0, 1)


def by_group(weight: Tensor, n_heads: int, n_kv_heads: int) -> Tensor:
    """The rows apart, (kv_heads, group, d_key, d_in)."""
    return weight.unflatten(0, (n_kv_heads, n_heads // n_kv_heads, len(weight) // n_heads))


BANK = Bank.read(__file__, pool_heads, globals())


def cases(numbers: Numbers) -> list[Case]:
    def case() -> Case:
        n_kv_heads, group, d_key, other = numbers.sizes_from.sample((2, 3, 4, 5), 4)
        n_heads = n_kv_heads * group
        weight = numbers.tensor(n_heads * d_key, n_heads * other)
        return Case({"weight": weight, "n_heads": n_heads, "n_kv_heads": n_kv_heads})

    return [case(), case()]


TASK = Task("pool_heads", pool_heads, BANK, cases, {"pooled": "kv_heads·d_key d_in"})


def check_pool_heads(function: Callable, *, seed: int = 0) -> Result:
    """Check pool_heads(weight, n_heads, n_kv_heads) -> weight with fewer heads.

    weight (n_heads · d_key, d_in), of w_k or w_v, as nn.Linear stores it -> (n_kv_heads · d_key,
    d_in): n_heads / n_kv_heads consecutive heads each, replaced by their mean.
    """
    return examine(TASK, function, seed)
