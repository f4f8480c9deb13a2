"""check_rotary_attention (chapter 10): several heads whose scores know the distance alone."""

from collections.abc import Callable

import torch
from torch import Tensor

from attention.dot_product import scaled_dot_product_attention
from attention.heads import merge_heads, split_heads
from attention.masks import causal_mask

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
IN_PLACE = "Split, turn `q` and `k`, and attend: `q, k = Rotary(d_key)(q, k)`."
THETA = "θ_i = 10000^(−2i/d_key)"


def rotary_attention(q, k, v, n_heads, mask):
    """Three (batch, seq, d_model) -> (batch, seq, d_model), (batch, heads, query, key)."""
    return merged(*in_heads(q, k, v, n_heads, mask))


def turned(x: Tensor, way: int = 1, theta: Tensor | None = None) -> Tensor:
    """Every row of (…, seq, width) turned by its place, in pairs of neighbours."""
    seq, width = x.shape[-2:]
    theta = thetas(width) if theta is None else theta
    angle = way * torch.arange(seq)[:, None] * theta
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(pairs, dim=-1).flatten(-2)


def thetas(width: int) -> Tensor:
    return 10000.0 ** (-torch.arange(0, width, 2) / width)


def same(x: Tensor) -> Tensor:
    return x


def in_heads(q, k, v, n_heads, mask, of_q=turned, of_k=turned, of_v=same, scale=None):
    """Attention of every head, with one thing changed: how q, k or v is turned, or the scale."""
    q, k, v = (split_heads(x, n_heads) for x in (q, k, v))
    return scaled_dot_product_attention(of_q(q), of_k(k), of_v(v), mask, scale=scale)


def merged(output, weights):
    return merge_heads(output), weights


def both(q, k, v, n_heads, mask, turn):
    """Queries and keys turned alike, in another way."""
    return merged(*in_heads(q, k, v, n_heads, mask, turn, turn))


@BANK.mistake(
    "The values are turned too. A value says what is found, not where: turned, the same word "
    "arrives as another vector from every place.",
    f"Leave `v` as it is. {IN_PLACE}",
)
def values_turned_too(q, k, v, n_heads, mask):
    return merged(*in_heads(q, k, v, n_heads, mask, of_v=turned))


@BANK.mistake(
    "The rows are turned before the split, d_model components at once. Then the first head gets "
    "all quick pairs and the last head all slow ones.",
    "Split first, so that every head has its own pairs from quick to slow.",
)
def turned_before_the_split(q, k, v, n_heads, mask):
    return merged(*in_heads(turned(q), turned(k), v, n_heads, mask, same, same))


@BANK.mistake(
    "The queries turn and the keys do not. So a score knows the place of the one that asks, and "
    "nothing of where the key stands.",
    f"Turn both alike: only then the difference of their angles is left. {IN_PLACE}",
)
def only_queries_turned(q, k, v, n_heads, mask):
    return merged(*in_heads(q, k, v, n_heads, mask, of_k=same))


@BANK.mistake(
    "The keys turn and the queries do not. So a score knows the place of the key, and nothing of "
    "where the one stands that asks.",
    f"Turn both alike: only then the difference of their angles is left. {IN_PLACE}",
)
def only_keys_turned(q, k, v, n_heads, mask):
    return merged(*in_heads(q, k, v, n_heads, mask, of_q=same))


@BANK.mistake(
    "Queries and keys turn in opposite ways, so that the angle between them grows with the sum "
    "of their places. Move the whole text by one place, and every score changes.",
    "Turn both the same way. The dot product makes the difference of itself.",
)
def keys_turned_the_other_way(q, k, v, n_heads, mask):
    return merged(*in_heads(q, k, v, n_heads, mask, of_k=lambda k: turned(k, way=-1)))


@BANK.mistake(
    "Both turn backwards, by −m · θ. The distance alone counts, but with its sign changed: a key "
    "behind scores as one ahead should.",
    "The first component becomes a·cos − b·sin, the second a·sin + b·cos.",
)
def both_turned_backwards(q, k, v, n_heads, mask):
    return both(q, k, v, n_heads, mask, lambda x: turned(x, way=-1))


@BANK.mistake(
    "Nothing in these scores knows a place. Either nothing is turned, or all rows of a head turn "
    "by one angle, and then the turns of query and key cancel.",
    "The angle grows along the rows of a head: `torch.arange(seq)`, and after the split seq is "
    f"axis 2 of (batch, heads, seq, d_key). {IN_PLACE}",
)
def not_turned(q, k, v, n_heads, mask):
    return both(q, k, v, n_heads, mask, same)


@BANK.mistake(
    "The places are counted along the batch: `len(x)` and `x.shape[0]` are the number of "
    "sentences.",
    "Rows stand on the axis before the last: `torch.arange(x.shape[-2])`.",
)
def places_of_the_batch(q, k, v, n_heads, mask):
    q = split_heads(q, n_heads)
    angle = torch.arange(len(q))[:, None] * thetas(q.shape[-1])
    return q[..., 0::2] * angle.cos()


@BANK.mistake(
    "The places are counted along the heads: after the split, axis 1 of (batch, heads, seq, d_key) "
    "is that of the heads.",
    "Rows stand on the axis before the last: `torch.arange(x.shape[-2])`.",
)
def places_of_the_heads(q, k, v, n_heads, mask):
    q = split_heads(q, n_heads)
    angle = torch.arange(n_heads)[:, None] * thetas(q.shape[-1])
    return q[..., 0::2] * angle.cos()


@BANK.mistake(
    "Your pairs are i and i + d_key/2, one component from each half. That is the other convention, "
    "of GPT-NeoX and Hugging Face's Llama. With it, weights that were trained for this one are "
    "another model.",
    "Pair neighbours: components 0 and 1, 2 and 3, with `x[..., 0::2]` and `x[..., 1::2]`. "
    "`Rotary` does so unless `halves=True`.",
)
def pairs_from_two_halves(q, k, v, n_heads, mask):
    def turn(x):
        return turned(x.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2))

    return both(q, k, v, n_heads, mask, turn)


@BANK.mistake(
    "The angles are those of d_model components: the exponent is −2i/d_model. A head has d_key of "
    "them, so that all your pairs but the first turn too quickly.",
    f"After the split take the width of a head: {THETA}, with `d_key = q.shape[-1]`.",
)
def angles_of_d_model(q, k, v, n_heads, mask):
    theta = thetas(q.shape[-1])[: q.shape[-1] // n_heads // 2]
    return both(q, k, v, n_heads, mask, lambda x: turned(x, theta=theta))


@BANK.mistake(
    "The exponent counts pairs, 0, 1, 2, …, and θ has 2i. Your slow pairs turn too quickly.",
    f"Use 0, 2, 4, …: `torch.arange(0, d_key, 2) / d_key` for {THETA}.",
)
def exponent_counts_pairs(q, k, v, n_heads, mask):
    d_key = q.shape[-1] // n_heads
    theta = 10000.0 ** (-torch.arange(d_key // 2) / d_key)
    return both(q, k, v, n_heads, mask, lambda x: turned(x, theta=theta))


@BANK.mistake(
    "All pairs turn by the same angle, one radian a place. After 6.28 places everything stands as "
    "before.",
    f"Give pair i its own angle: {THETA}.",
)
def one_angle_for_all(q, k, v, n_heads, mask):
    return both(q, k, v, n_heads, mask, lambda x: turned(x, theta=torch.ones(x.shape[-1] // 2)))


@BANK.mistake(
    "The output of each head is turned, and the queries and keys are not. The softmax has chosen "
    "by then, so that no score knows a distance.",
    f"Turn before the scores. {IN_PLACE}",
)
def output_turned(q, k, v, n_heads, mask):
    output, weights = in_heads(q, k, v, n_heads, mask, same, same)
    return merged(turned(output), weights)


@BANK.mistake(
    "The merged output is turned, and the queries and keys are not. The softmax has chosen by "
    "then, so that no score knows a distance.",
    f"Turn before the scores. {IN_PLACE}",
)
def merged_output_turned(q, k, v, n_heads, mask):
    output, weights = both(q, k, v, n_heads, mask, same)
    return turned(output), weights


@BANK.mistake(
    "The scores are divided by √d_model. They are sums over the d_key components of one head.",
    "Divide by √d_key, the width after the split: `q.shape[-1] ** 0.5`.",
)
def scaled_by_d_model(q, k, v, n_heads, mask):
    return merged(*in_heads(q, k, v, n_heads, mask, scale=q.shape[-1] ** -0.5))


@BANK.mistake(
    "The scores are not scaled. A turn keeps the length of every row, so they are as large as "
    "without it.",
    "Divide them by √d_key, the width after the split.",
)
def unscaled(q, k, v, n_heads, mask):
    return merged(*in_heads(q, k, v, n_heads, mask, scale=1.0))


@BANK.mistake(
    "The mask is the wrong way round: every query sees what is forbidden to it.",
    "True means: may attend. Fill the others: `scores.masked_fill(~mask, -torch.inf)`.",
)
def mask_inverted(q, k, v, n_heads, mask):
    return rotary_attention(q, k, v, n_heads, ~mask)


@BANK.mistake(
    "The mask is left out. Rotary positions say how far a key stands, and forbid nothing.",
    "Hand the mask on: `scaled_dot_product_attention(q, k, v, mask)`.",
)
def mask_left_out(q, k, v, n_heads, mask):
    return rotary_attention(q, k, v, n_heads, None)


@BANK.mistake(
    "The mask comes after the softmax, so that forbidden keys have taken their share already.",
    "Mask the scores: `scores.masked_fill(~mask, -torch.inf)`, and then take the softmax.",
    lambda yours, right, inputs: (
        f"One of your rows sums to {yours[1].sum(dim=-1).min():.2f}, and it should be 1."
    ),
)
def masked_after_the_softmax(q, k, v, n_heads, mask):
    _, weights = rotary_attention(q, k, v, n_heads, None)
    weights = weights * mask
    return merged(weights @ split_heads(v, n_heads), weights)


@BANK.mistake(
    "The heads are right, and not merged yet: (batch, heads, seq, d_key).",
    "Put them side by side again: `merge_heads(output)`.",
)
def not_merged(q, k, v, n_heads, mask):
    return in_heads(q, k, v, n_heads, mask)


@BANK.mistake(
    "The heads are cut back into rows without the transpose, so that a row holds pieces of several "
    "tokens.",
    "`merge_heads(output)`, or `output.transpose(1, 2).flatten(2)`.",
)
def merged_without_the_transpose(q, k, v, n_heads, mask):
    output, weights = in_heads(q, k, v, n_heads, mask)
    return output.reshape(q.shape), weights


@BANK.mistake(
    "The rows are turned in float64, and the values are float32: torch multiplies no two kinds.",
    "Leave the places as integers, `torch.arange(seq)`: times the float θ they become float32. Or "
    "end the turn with `.to(x.dtype)`.",
)
def turned_in_float64(q, k, v, n_heads, mask):
    def turn(x):
        return turned(x.double())

    return both(q, k, v, n_heads, mask, turn)


def cases(numbers: Numbers) -> list[Case]:
    def case(n_heads: int, d_key: int, *, padded: bool) -> Case:
        batch, seq = sorted(numbers.sizes(2, least=4))
        q, k, v = (numbers.tensor(batch, seq, n_heads * d_key) for _ in range(3))
        mask = numbers.padding(batch, seq)[:, None, None, :] if padded else causal_mask(seq)
        return Case({"q": q, "k": k, "v": v, "n_heads": n_heads, "mask": mask})

    few, more = numbers.sizes_from.sample((2, 3), 2)
    return [case(few, 4, padded=False), case(more, 8, padded=False), case(few, 8, padded=True)]


TASK = Task(
    "rotary_attention",
    rotary_attention,
    BANK,
    cases,
    {"output": "batch seq d_model", "weights": "batch heads query key"},
)


def check_rotary_attention(function: Callable, *, seed: int = 0) -> Result:
    """Check rotary_attention(q, k, v, n_heads, mask) -> (output, weights).

    q, k and v (batch, seq, d_model) are projected and not yet split; mask is boolean, True = may
    attend, and broadcasts to (batch, heads, query, key). The output is merged, (batch, seq,
    d_model), the weights are (batch, heads, query, key). Components 2i and 2i + 1 of a head turn by
    10000^(−2i/d_key) radians a place. Where the places begin makes no difference.
    """
    return examine(TASK, function, seed)
