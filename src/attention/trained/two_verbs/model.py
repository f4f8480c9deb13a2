"""The model of `who_and_whom`, which asks at one verb of a sentence at a time."""

from collections.abc import Callable
from functools import partial

from attention.trained.two_verbs.data import LONGEST, VOCABULARY
from attention.trained.who_and_whom.model import WhoAndWhom

# The (d_model, n_heads) of which weights are stored.
SIZES = [(8, 1), (8, 2), (8, 4), (8, 8), (12, 2)]


def make(d_model: int, n_heads: int) -> WhoAndWhom:
    """Make a model as it is before its first step.

    Args:
        d_model: the width of a word's vector.
        n_heads: how many heads.
    """
    return WhoAndWhom(d_model, n_heads, VOCABULARY, LONGEST)


def file_name(d_model: int, n_heads: int) -> str:
    return f"{d_model}x{n_heads}"


MODELS: dict[str, Callable[[], WhoAndWhom]] = {
    file_name(*size): partial(make, *size) for size in SIZES
}
