"""Mistakes in scaled dot-product attention: the scale, the softmax, the mask, the order."""

import math

import torch  # noqa: F401 - rows use it
from torch.nn import functional as F  # noqa: F401

from attention.dot_product import scaled_dot_product_attention

from .bank import Bank


def attend(query, key, value, mask, *, scale=None, softmax=None):
    """Attention in steps, with a scale of your own and a softmax of your own."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1) if softmax is None else softmax(scores)
    return weights @ value, weights


def after_scores(query, key, value, to_weights):
    """Attention whose mask acts in `to_weights`, which gets the scaled scores."""
    weights = to_weights(query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
    return weights @ value, weights


# What the numbers of the learner's own weights say.


def largest(yours, right, inputs):
    """How sharp the weights are."""
    sharp = [weights.amax(dim=-1).mean() for weights in (yours[1], right[1])]
    return f"A query's largest weight is {sharp[0]:.2f} on average, and should be {sharp[1]:.2f}."


def sums(yours, right, inputs):
    row, column = yours[1][0, 0, 0].sum(), yours[1][0, 0, :, 0].sum()
    return f"In yours, row 0 of head 0 sums to {row:.2f} and column 0 to {column:.2f}."


def forbidden(yours, right, inputs):
    """How much weight goes where the mask is False."""
    mask = inputs["mask"].expand(yours[1].shape)
    share = (yours[1] * ~mask).sum() / yours[1].sum()
    return f"Of all your weight, {share:.0%} goes to keys that may not be attended to."


BANK = Bank.read(__file__, scaled_dot_product_attention, globals())
