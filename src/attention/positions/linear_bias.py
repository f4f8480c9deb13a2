"""A bias linear in distance, or ALiBi: the further away a key, the lower its score.

Nothing is added to the words, and queries and keys stay as they are. Each head subtracts from every
score its slope times the distance between query and key. A steep slope confines a head to what is
near, and a gentle one lets it look far. There is no limit on the length, and the bias of a distance
that no training sentence had continues a straight line.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention.arguments import require_size


class LinearBias(nn.Module):
    """The bias −slope · distance, one slope for each head. Nothing is learned.

    Give it to `DotProduct` as its bias. One module may serve all layers. The queries are the last
    n_queries of n_keys positions, aligned as in `causal_mask`. The slopes are computed again when
    the module moves; after load_state_dict(…, assign=True) on a module made on the meta device,
    call this module's `to_empty`.

    The paper is causal: each query sees keys in the past, and a mask hides the others. Here a key
    in the future gets the same bias as a key that is as far in the past. Under a causal mask this
    is the paper's bias; without one it is symmetric, and not the paper's.

    Buffer by name: `slopes` (heads); no state_dict holds it.

    Args:
        n_heads: how many slopes. For a power of two, head h of 1, 2, …, n_heads has the slope
            2^(−8h/n_heads). The paper's text has this rule for every number. For other numbers this
            module departs from it as the authors' code does: the first heads have the slopes of the
            largest power of two below, and the others have every other slope of twice that power:
            the 1st, 3rd, 5th and so on.

    Source:
        Press et al. 2022, §3; the slopes for other numbers than powers of two are those of the
        authors' code.

    Example:
        >>> from attention import LinearBias
        >>> bias = LinearBias(n_heads=4)
        >>> bias.slopes.tolist()
        [0.25, 0.0625, 0.015625, 0.00390625]
        >>> bias(2, 4)[0]  # the queries at positions 2 and 3
        tensor([[-0.5000, -0.2500, -0.0000, -0.2500],
                [-0.7500, -0.5000, -0.2500, -0.0000]])
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        require_size("n_heads", n_heads)
        self.n_heads = n_heads
        wide = torch.promote_types(torch.get_default_dtype(), torch.float32)
        slopes = torch.tensor(slopes_of(n_heads), dtype=wide)
        self.register_buffer("slopes", slopes, persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        """Move the module, as torch does, and compute the slopes again, in float32 at least.

        Otherwise `double` would leave them as exact as float32, and `to_empty` would leave them
        uninitialised.
        """
        super()._apply(fn, recurse)
        dtype = torch.promote_types(self.slopes.dtype, torch.float32)
        self.slopes = torch.tensor(slopes_of(self.n_heads), dtype=dtype, device=self.slopes.device)
        return self

    def forward(self, n_queries: int, n_keys: int) -> Float[Tensor, "heads query key"]:
        """−slope · distance, for every head, query and key, in float32 at least.

        Raises:
            TypeError, ValueError: for a number of queries or keys that is not an int above 0.

        Cost:
            O(heads · query · key) operations and numbers.
        """
        require_size("n_queries", n_queries)
        require_size("n_keys", n_keys)
        key = torch.arange(n_keys, device=self.slopes.device)
        query = torch.arange(n_keys - n_queries, n_keys, device=self.slopes.device)
        distance = (query[:, None] - key).abs()  # (query, key)
        return -self.slopes[:, None, None] * distance

    def by_distance(self, n_queries: int, n_keys: int) -> Float[Tensor, "heads distance"]:
        """The bias of each distance, once: n_keys − 1, n_keys − 2, …, 0, …, 1 − n_queries.

        A distance below 0 is that of a key in the future. The last query's row is the first n_keys
        numbers, and the row of each earlier query begins one number later.

        Raises:
            TypeError, ValueError: for a number of queries or keys that is not an int above 0.

        Cost:
            O(heads · (query + key)) operations and numbers.
        """
        require_size("n_queries", n_queries)
        require_size("n_keys", n_keys)
        distance = torch.arange(n_keys - 1, -n_queries, -1, device=self.slopes.device)
        return -self.slopes[:, None] * distance.abs()

    def extra_repr(self) -> str:
        return f"n_heads={self.n_heads}"


def slopes_of(n_heads: int) -> list[float]:
    """The slope of each head."""
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    between = [2 ** (-4 * h / power) for h in range(1, 2 * power, 2)]
    return slopes + between[: n_heads - power]
