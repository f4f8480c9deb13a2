"""Mistakes in scaled dot-product attention: the scale, the softmax, the mask, the order."""

import math

import torch
from torch.nn import functional as F

from .bank import Bank

BANK = Bank()


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


# The scale.


@BANK.mistake(
    "The scores are not scaled. Their variance grows with d_key, and softmax sharpens.",
    "Divide them by `math.sqrt(d_key)`, the root of the last axis of the query.",
    largest,
)
def not_scaled(query, key, value, mask=None):
    return attend(query, key, value, mask, scale=1.0)


@BANK.mistake(
    "The scores are divided by d_key instead of its root, or by the root twice. That makes the "
    "weights more equal than they should be.",
    "The dot product's variance is d_key, so its standard deviation is the root: divide once by "
    "`math.sqrt(d_key)`.",
    largest,
)
def divided_by_d_key(query, key, value, mask=None):
    return attend(query, key, value, mask, scale=1 / query.shape[-1])


@BANK.mistake(
    "The scores are divided by √d_model, with d_model = n_heads · d_key. Each dot product has only "
    "d_key terms.",
    "Divide by `math.sqrt(query.shape[-1])`.",
    largest,
)
def divided_by_root_of_d_model(query, key, value, mask=None):
    d_model = query.shape[1] * query.shape[-1]
    return attend(query, key, value, mask, scale=1 / math.sqrt(d_model))


@BANK.mistake(
    "The scores are divided by the root of the number of keys. d_key is the width of a key, not "
    "how many there are.",
    "It is the last axis: `math.sqrt(key.shape[-1])`.",
    largest,
)
def divided_by_root_of_keys(query, key, value, mask=None):
    return attend(query, key, value, mask, scale=1 / math.sqrt(key.shape[-2]))


@BANK.mistake(
    "The scores are divided by √d_value. A value may be wider or narrower than a key, and is not "
    "part of the dot product.",
    "It is the last axis of the key: `math.sqrt(key.shape[-1])`.",
    largest,
)
def divided_by_root_of_d_value(query, key, value, mask=None):
    return attend(query, key, value, mask, scale=1 / math.sqrt(value.shape[-1]))


@BANK.mistake(
    "The scores are multiplied by √d_key. Their spread was too large already.",
    "Divide by it.",
    largest,
)
def multiplied_by_root_of_d_key(query, key, value, mask=None):
    return attend(query, key, value, mask, scale=math.sqrt(query.shape[-1]))


@BANK.mistake(
    "The division by √d_key comes after the softmax, so that rows no longer sum to 1, and the "
    "softmax was as sharp as without it.",
    "Scale the scores, before the softmax.",
    sums,
)
def scaled_after_the_softmax(query, key, value, mask=None):
    _, weights = attend(query, key, value, mask, scale=1.0)
    weights = weights / math.sqrt(query.shape[-1])
    return weights @ value, weights


# The softmax.


@BANK.mistake(
    "Your weights are what softmax over the query axis gives: every column sums to 1, but a row "
    "must, since each query shares itself out among the keys.",
    "Softmax over the keys, the last axis: `dim=-1`.",
    sums,
)
def softmax_over_queries(query, key, value, mask=None):
    return attend(query, key, value, mask, softmax=lambda scores: scores.softmax(dim=-2))


@BANK.mistake(
    "Your weights are what softmax over the heads gives: for a query and a key the weights of all "
    "heads sum to 1, but in each head a row must.",
    "Softmax over the keys, `dim=-1`: axis 1 is the heads, axis 3 the keys.",
    sums,
)
def softmax_over_heads(query, key, value, mask=None):
    return attend(query, key, value, mask, softmax=lambda scores: scores.softmax(dim=1))


@BANK.mistake(
    "Your weights are what softmax over the batch gives: the sentences share a weight of 1, and "
    "each depends on the others.",
    "Softmax over the keys, the last axis: `dim=-1`.",
    sums,
)
def softmax_over_the_batch(query, key, value, mask=None):
    return attend(query, key, value, mask, softmax=lambda scores: scores.softmax(dim=0))


@BANK.mistake(
    "Your weights are what one softmax over all queries and keys gives: a whole head sums to 1, "
    "but each row must.",
    "Softmax over the keys alone: `dim=-1`.",
    sums,
)
def softmax_over_everything(query, key, value, mask=None):
    def softmax(scores):
        return scores.flatten(-2).softmax(dim=-1).view_as(scores)

    return attend(query, key, value, mask, softmax=softmax)


@BANK.mistake(
    "The softmax is missing: the values are added up with the scores, which may be negative.",
    "Turn each row of scores into weights that sum to 1: `scores.softmax(dim=-1)`.",
    sums,
)
def no_softmax(query, key, value, mask=None):
    return attend(query, key, value, mask, softmax=lambda scores: scores)


@BANK.mistake(
    "This is `log_softmax`, the logarithm of the weights: no number of it is positive.",
    "Use `softmax(dim=-1)`.",
    sums,
)
def log_softmax(query, key, value, mask=None):
    return attend(query, key, value, mask, softmax=lambda scores: scores.log_softmax(dim=-1))


@BANK.mistake(
    "This is a sigmoid of each score. It looks at one key at a time; attention shares a weight of "
    "1 out among all.",
    "Use `softmax(dim=-1)`.",
    sums,
)
def sigmoid(query, key, value, mask=None):
    return attend(query, key, value, mask, softmax=torch.sigmoid)


@BANK.mistake(
    "The softmax overflows: in float32 `exp` is infinite from 89 on, and inf/inf is NaN.",
    "Use `torch.softmax`, or subtract the row's largest score first: it changes no weight.",
)
def exp_overflows(query, key, value, mask=None):
    def softmax(scores):
        return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)

    return attend(query, key, value, mask, softmax=softmax)


@BANK.mistake(
    "`exp` overflows, and what is NaN then is turned into 0. A score of some hundreds is a good "
    "one, and its key gets next to nothing.",
    "Leave no NaN: subtract each row's largest score before `exp`, or use `softmax`.",
)
def overflow_turned_into_zero(query, key, value, mask=None):
    def softmax(scores):
        return (scores.exp() / scores.exp().sum(dim=-1, keepdim=True)).nan_to_num(0.0)

    return attend(query, key, value, mask, softmax=softmax)


@BANK.mistake(
    "The largest score of all rows is subtracted before `exp`. In a row whose own scores are far "
    "below it all powers are 0, and 0/0 is NaN.",
    "Subtract each row's own largest score: `scores.amax(dim=-1, keepdim=True)`.",
)
def largest_of_all_subtracted(query, key, value, mask=None):
    def softmax(scores):
        powers = (scores - scores.max()).exp()
        return powers / powers.sum(dim=-1, keepdim=True)

    return attend(query, key, value, mask, softmax=softmax)


@BANK.mistake(
    "Queries and keys are brought to length 1 first, which makes this a cosine. A dot product is "
    "not bounded by 1; how long a key is counts.",
    "Leave their length alone.",
    largest,
)
def cosine(query, key, value, mask=None):
    return attend(F.normalize(query, dim=-1), F.normalize(key, dim=-1), value, mask)


# The mask.


@BANK.mistake(
    "The mask has no effect.",
    "Where it is False the scores become -inf, before the softmax: "
    "`scores.masked_fill(~mask, -math.inf)`.",
    forbidden,
)
def mask_forgotten(query, key, value, mask=None):
    return attend(query, key, value, None)


@BANK.mistake(
    "The mask is the wrong way round: True means may attend.",
    "`masked_fill` writes where its mask is True, so turn yours: `masked_fill(~mask, -math.inf)`.",
    forbidden,
)
def mask_inverted(query, key, value, mask=None):
    return attend(query, key, value, None if mask is None else ~mask)


@BANK.mistake(
    "The mask acts after the softmax: rows do not sum to 1, and each still depends on the keys it "
    "may not see, through the sum it was divided by.",
    "Write -inf over the scores, before the softmax.",
    sums,
)
def mask_after_softmax(query, key, value, mask=None):
    def weights(scores):
        return scores.softmax(dim=-1) if mask is None else scores.softmax(dim=-1) * mask

    return after_scores(query, key, value, weights)


@BANK.mistake(
    "The mask acts after the softmax, and the rows are divided by what is left. That is right as "
    "long as something is left: where a forbidden key takes the whole weight the others are "
    "rounded to 0, and 0/0 is NaN.",
    "Write -inf over the scores, before the softmax.",
)
def mask_after_softmax_and_divided(query, key, value, mask=None):
    def weights(scores):
        if mask is None:
            return scores.softmax(dim=-1)
        left = scores.softmax(dim=-1) * mask
        return left / left.sum(dim=-1, keepdim=True)

    return after_scores(query, key, value, weights)


@BANK.mistake(
    "Forbidden scores become 0 (or as good as 0: 1e-9 for -1e9). A score of 0 is a score like any "
    "other, and gets a weight of e⁰ = 1 before the division.",
    "Write -inf over them: `scores.masked_fill(~mask, -math.inf)`.",
    forbidden,
)
def forbidden_scores_zero(query, key, value, mask=None):
    def weights(scores):
        return (scores if mask is None else scores * mask).softmax(dim=-1)

    return after_scores(query, key, value, weights)


@BANK.mistake(
    "The mask is added to the scores as ones and zeros: 1 more for the keys that may be seen, and "
    "nothing is forbidden.",
    "Write -inf where it is False: `scores.masked_fill(~mask, -math.inf)`.",
    forbidden,
)
def mask_added_as_numbers(query, key, value, mask=None):
    def weights(scores):
        return (scores if mask is None else scores + mask).softmax(dim=-1)

    return after_scores(query, key, value, weights)


# Which tensor goes where, and what comes back.


@BANK.mistake(
    "Keys and values have changed roles: queries are compared with the values.",
    "softmax(q kᵀ / √d_key) v: the key is asked, the value is taken.",
)
def key_and_value_swapped(query, key, value, mask=None):
    return attend(query, value, key, mask)


@BANK.mistake(
    "The keys are weighted and added up, not the values.",
    "The second product is `weights @ value`.",
)
def keys_taken(query, key, value, mask=None):
    return attend(query, key, key, mask)


@BANK.mistake(
    "Queries and keys have changed roles: your weights are (key, query).",
    "Queries stand on the left: `query @ key.transpose(-2, -1)` is (query, key).",
)
def query_and_key_swapped(query, key, value, mask=None):
    return attend(key, query, value, mask)


@BANK.mistake(
    "The keys are brought into the right shape by a reshape. It leaves the numbers in their order, "
    "so that a column holds parts of several keys.",
    "Let the last two axes change places: `key.transpose(-2, -1)`.",
)
def key_reshaped(query, key, value, mask=None):
    batch, heads, keys, d_key = key.shape
    return attend(query, key.reshape(batch, heads, d_key, keys).mT, value, mask)


@BANK.mistake(
    "The keys are not transposed, so that their tokens meet the components of the queries.",
    "`query @ key.transpose(-2, -1)`: (query, d_key) times (d_key, key).",
)
def key_not_transposed(query, key, value, mask=None):
    scores = query @ key / math.sqrt(query.shape[-1])
    return scores.softmax(dim=-1) @ value, scores.softmax(dim=-1)


@BANK.mistake(
    "The output is right, and where weights are due you return the scores.",
    "Return what the softmax made of them.",
    sums,
)
def scores_returned(query, key, value, mask=None):
    output, _ = attend(query, key, value, mask)
    return output, attend(query, key, value, mask, softmax=lambda scores: scores)[1]


@BANK.mistake(
    "The two results are in the wrong order.",
    "`return output, weights`.",
)
def weights_first(query, key, value, mask=None):
    return attend(query, key, value, mask)[::-1]


@BANK.mistake(
    "The weights are averaged over the heads: a map that no head has.",
    "Return them as they are, (batch, heads, query, key).",
)
def weights_averaged(query, key, value, mask=None):
    output, weights = attend(query, key, value, mask)
    return output, weights.mean(dim=1)
