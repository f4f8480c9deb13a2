"""The book's model with one thing changed, trained like the original: what the change costs.

A trained model cannot tell what a change costs. Its weights fit the way it was trained, so any
change afterwards does harm. Each of these models was trained from its first step with the change in
it.
"""

from collections.abc import Callable
from functools import partial

from torch import nn

from attention.trained.who_and_whom.model import SIZES, WhoAndWhom
from attention.trained.who_and_whom.training import RECIPES
from attention.transformer.feed_forward import FeedForward

Change = Callable[[WhoAndWhom], None]  # what is done to a new model before its first step


def without_positions(model: WhoAndWhom) -> None:
    """Leave the positional encoding out."""
    model.positional_encoding = nn.Identity()


def one_matrix_for_queries_and_keys(model: WhoAndWhom) -> None:
    """Use W_q, with its bias, for the keys too."""
    model.attention.w_k = model.attention.w_q


def with_feed_forward(model: WhoAndWhom) -> None:
    """Let a feed-forward layer work on each row that attention returns, and add what it makes."""
    # It is a part of the attention, so that a copy of the model has its own.
    model.attention.feed_forward = FeedForward(model.attention.d_model, d_ff=128)

    def add(attention: nn.Module, inputs: object, returned: tuple) -> tuple:
        output, weights = returned
        return output + attention.feed_forward(output), weights

    model.attention.register_forward_hook(add)


VARIANTS: dict[str, Change] = {
    "no-positions": without_positions,
    "one-matrix-for-q-and-k": one_matrix_for_queries_and_keys,
    "feed-forward": with_feed_forward,
}


def make(d_model: int, n_heads: int, variant: str | None = None) -> WhoAndWhom:
    """A new model, with the change if it is to be a variant."""
    model = WhoAndWhom(d_model, n_heads)
    if variant is not None:
        VARIANTS[variant](model)
    return model


def file_name(d_model: int, n_heads: int, variant: str | None = None) -> str:
    return f"{d_model}x{n_heads}" + ("" if variant is None else f"-{variant}")


# The sizes and, at d_model 8, the variants, of which the one with a feed-forward layer has one
# head.
STORED = [*SIZES, *((8, 1 if variant == "feed-forward" else 2, variant) for variant in VARIANTS)]
MODELS: dict[str, Callable[[], WhoAndWhom]] = {
    file_name(*which): partial(make, *which) for which in STORED
}
RECIPE_OF = {file_name(*which): RECIPES[which[0]] for which in STORED}
# A feed-forward layer lets one head do the task, at steps that are not too large.
RECIPE_OF["8x1-feed-forward"] = RECIPES[8]._replace(learning_rate=0.01)
