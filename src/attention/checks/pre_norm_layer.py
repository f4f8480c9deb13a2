"""check_pre_norm_layer (chapter 11): a whole layer, from rows and weights to rows."""

from collections.abc import Callable
from functools import partial

import torch

from attention.heads import merge_heads, split_heads
from attention.transformer.encoder import EncoderLayer

from . import merging, splitting
from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .result import Result

BANK = Bank()
EPS = 1e-5
# Rows as small as these show whether eps is there.
SMALL = 0.01


def linear(rows, w, name):
    return rows @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def without_transpose(rows, w, name):
    return rows @ w[f"{name}.weight"] + w[f"{name}.bias"]


def without_bias(rows, w, name):
    return rows @ w[f"{name}.weight"].T


def norm(rows, w, name, *, dim=-1, correction=0, eps=EPS):
    mean = rows.mean(dim=dim, keepdim=True)
    variance = rows.var(dim=dim, correction=correction, keepdim=True)
    normed = (rows - mean) / (variance + eps).sqrt()
    return w[f"{name}_norm.weight"] * normed + w[f"{name}_norm.bias"]


def no_norm(rows, w, name):
    return rows


def no_gain(rows, w, name):
    plain = {f"{name}_norm.weight": torch.ones(()), f"{name}_norm.bias": torch.zeros(())}
    return norm(rows, plain, name)


def attention(
    rows,
    w,
    n_heads,
    *,
    linear=linear,
    values_from=None,
    split=split_heads,
    merge=merge_heads,
    divide_by=None,
    softmax_over=-1,
    out=True,
):
    """Self-attention, (batch, seq, d_model) in and out; values_from: other rows than the keys'."""
    values_from = rows if values_from is None else values_from
    q = split(linear(rows, w, "self_attention.w_q"), n_heads)
    k = split(linear(rows, w, "self_attention.w_k"), n_heads)
    v = split(linear(values_from, w, "self_attention.w_v"), n_heads)
    scores = q @ k.transpose(-2, -1) / (divide_by or q.shape[-1] ** 0.5)
    merged = merge(scores.softmax(dim=softmax_over) @ v)
    return linear(merged, w, "self_attention.w_o") if out else merged


def feed_forward(rows, w, *, linear=linear, inside=torch.relu, after=lambda rows: rows):
    hidden = inside(linear(rows, w, "feed_forward.w_1"))
    return after(linear(hidden, w, "feed_forward.w_2"))


def layer(x, w, n_heads, *, norm=norm, attention=attention, feed_forward=feed_forward):
    """The layer, with parts that can be exchanged."""
    h = x + attention(norm(x, w, "self_attention"), w, n_heads)
    return h + feed_forward(norm(h, w, "feed_forward"), w)


def with_linear(x, w, n_heads, linear):
    parts = {"attention": attention, "feed_forward": feed_forward}
    exchanged = {name: partial(part, linear=linear) for name, part in parts.items()}
    return layer(x, w, n_heads, **exchanged)


def pre_norm_layer(x, w, n_heads):
    """x (batch, seq, d_model), w by the names of EncoderLayer's state dict -> like x."""
    return layer(x, w, n_heads)


PLACES = (
    "The order is `h = x + attention(norm(x))`, then `h + feed_forward(norm(h))`: the norm stands "
    "before each sublayer, and the sum itself is not normed."
)
PER_ROW = "Each row is normed by itself: `dim=-1`, with `keepdim=True`."
STORED = "nn.Linear stores (out, in): `rows @ weight.T + bias`."
TRANSPOSED = (
    "`.unflatten(-1, (n_heads, -1)).transpose(1, 2)` cuts the heads, and "
    "`.transpose(1, 2).flatten(2)` joins them."
)


@BANK.mistake(
    "This is post-norm: each sum is normed, and each sublayer reads rows that are not.",
    PLACES,
)
def post_norm(x, w, n_heads):
    h = norm(x + attention(x, w, n_heads), w, "self_attention")
    return norm(h + feed_forward(h, w), w, "feed_forward")


@BANK.mistake(
    "Both residual connections start from the normed rows. The name `x` may have been given to "
    "them: after `x = norm(x)` the rows that came in are lost.",
    f"Give the normed rows a name of their own. {PLACES}",
)
def residuals_from_normed_rows(x, w, n_heads):
    x = norm(x, w, "self_attention")
    h = norm(x + attention(x, w, n_heads), w, "feed_forward")
    return h + feed_forward(h, w)


@BANK.mistake(
    "The residual connection around attention adds the normed rows, not the rows that came in.",
    f"Add x itself. {PLACES}",
)
def normed_rows_added_to_attention(x, w, n_heads):
    x = norm(x, w, "self_attention")
    h = x + attention(x, w, n_heads)
    return h + feed_forward(norm(h, w, "feed_forward"), w)


@BANK.mistake(
    "The residual connection around the feed-forward layer adds the normed rows, not the rows that "
    "attention has left.",
    f"Add h itself. {PLACES}",
)
def normed_rows_added_to_feed_forward(x, w, n_heads):
    h = norm(x + attention(norm(x, w, "self_attention"), w, n_heads), w, "feed_forward")
    return h + feed_forward(h, w)


@BANK.mistake(
    "There is no residual connection around attention: the rows that came in are lost there.",
    PLACES,
)
def no_residual_around_attention(x, w, n_heads):
    h = attention(norm(x, w, "self_attention"), w, n_heads)
    return h + feed_forward(norm(h, w, "feed_forward"), w)


@BANK.mistake(
    "There is no residual connection around the feed-forward layer: what attention has left is "
    "lost there.",
    PLACES,
)
def no_residual_around_feed_forward(x, w, n_heads):
    h = x + attention(norm(x, w, "self_attention"), w, n_heads)
    return feed_forward(norm(h, w, "feed_forward"), w)


@BANK.mistake(
    "There is no residual connection at all: each sublayer replaces the rows, and should add to "
    "them.",
    PLACES,
)
def no_residuals(x, w, n_heads):
    h = attention(norm(x, w, "self_attention"), w, n_heads)
    return feed_forward(norm(h, w, "feed_forward"), w)


@BANK.mistake(
    "The second residual connection adds x once more, so that what attention made reaches the "
    "result through the feed-forward layer alone.",
    f"Add h. {PLACES}",
)
def x_added_twice(x, w, n_heads):
    h = x + attention(norm(x, w, "self_attention"), w, n_heads)
    return x + feed_forward(norm(h, w, "feed_forward"), w)


@BANK.mistake(
    "The feed-forward layer reads x, beside attention. It should read what attention has left.",
    f"Norm h, not x, for it. {PLACES}",
)
def feed_forward_reads_x(x, w, n_heads):
    h = x + attention(norm(x, w, "self_attention"), w, n_heads)
    return h + feed_forward(norm(x, w, "feed_forward"), w)


@BANK.mistake(
    "The feed-forward layer reads the rows that were normed for attention. It should read what "
    "attention has left.",
    f"Norm h for it. {PLACES}",
)
def feed_forward_reads_attentions_rows(x, w, n_heads):
    normed = norm(x, w, "self_attention")
    return x + attention(normed, w, n_heads) + feed_forward(normed, w)


@BANK.mistake(
    "One norm serves both sublayers: that of attention, with its gain and its bias.",
    'Before the feed-forward layer stands a norm of its own, `w["feed_forward_norm.weight"]` and '
    "its bias.",
)
def one_norm_for_both(x, w, n_heads):
    return layer(x, w, n_heads, norm=lambda rows, w, name: norm(rows, w, "self_attention"))


@BANK.mistake(
    "The two norms have changed places.",
    '`w["self_attention_norm.weight"]` stands before attention, `w["feed_forward_norm.weight"]` '
    "before the feed-forward layer.",
)
def norms_swapped(x, w, n_heads):
    other = {"self_attention": "feed_forward", "feed_forward": "self_attention"}
    return layer(x, w, n_heads, norm=lambda rows, w, name: norm(rows, w, other[name]))


@BANK.mistake("Nothing is normed.", PLACES)
def no_norms(x, w, n_heads):
    return layer(x, w, n_heads, norm=no_norm)


@BANK.mistake("Attention reads rows that were not normed.", PLACES)
def no_norm_before_attention(x, w, n_heads):
    h = x + attention(x, w, n_heads)
    return h + feed_forward(norm(h, w, "feed_forward"), w)


@BANK.mistake("The feed-forward layer reads rows that were not normed.", PLACES)
def no_norm_before_feed_forward(x, w, n_heads):
    h = x + attention(norm(x, w, "self_attention"), w, n_heads)
    return h + feed_forward(h, w)


@BANK.mistake(
    "Queries and keys are made from normed rows, and the values from rows that were not normed.",
    "All three read the same rows: norm once, then project.",
)
def values_from_x(x, w, n_heads):
    return layer(x, w, n_heads, attention=partial(attention, values_from=x))


@BANK.mistake(
    "The norms have no gain and no bias: every row comes out with mean 0 and variance 1.",
    "Multiply by the norm's weight and add its bias, after the division.",
)
def norms_without_gain_and_bias(x, w, n_heads):
    return layer(x, w, n_heads, norm=no_gain)


@BANK.mistake(
    "The norms take mean and variance over the sequence, axis 1. Then a row depends on the other "
    "words.",
    PER_ROW,
)
def normed_over_the_sequence(x, w, n_heads):
    return layer(x, w, n_heads, norm=partial(norm, dim=1))


@BANK.mistake(
    "The norms take mean and variance over a whole sentence, all its rows together.",
    PER_ROW,
)
def normed_over_a_sentence(x, w, n_heads):
    return layer(x, w, n_heads, norm=partial(norm, dim=(1, 2)))


@BANK.mistake(
    "The norms' variance is the estimate for a sample, divided by d_model − 1. torch's `var` and "
    "`std` do that unless told otherwise; layer norm divides by d_model.",
    "Say so: `.var(dim=-1, correction=0, keepdim=True)`.",
)
def variance_of_a_sample(x, w, n_heads):
    return layer(x, w, n_heads, norm=partial(norm, correction=1))


@BANK.mistake(
    "The norms have no eps: small rows come out too large.",
    "Add it to the variance, inside the root: `(variance + 1e-5).sqrt()`.",
)
def without_eps(x, w, n_heads):
    return layer(x, w, n_heads, norm=partial(norm, eps=0))


@BANK.mistake(
    "The ReLU is missing. Two linear layers with nothing between them are one linear layer.",
    "Set the negative hidden numbers to 0: `hidden.clamp(min=0)`, or `hidden.relu()`.",
)
def without_relu(x, w, n_heads):
    return layer(x, w, n_heads, feed_forward=partial(feed_forward, inside=lambda rows: rows))


@BANK.mistake(
    "The ReLU stands after the second linear layer, so the feed-forward layer can add no negative "
    "number.",
    "It stands between the two: on the hidden numbers, (batch, seq, d_ff).",
)
def relu_at_the_end(x, w, n_heads):
    late = partial(feed_forward, inside=lambda rows: rows, after=torch.relu)
    return layer(x, w, n_heads, feed_forward=late)


@BANK.mistake(
    "There is a second ReLU, after the second linear layer, so the feed-forward layer can add no "
    "negative number.",
    "One ReLU is enough: on the hidden numbers, (batch, seq, d_ff).",
)
def relu_twice(x, w, n_heads):
    return layer(x, w, n_heads, feed_forward=partial(feed_forward, after=torch.relu))


@BANK.mistake(
    "The weights are used as they are stored, and they are stored transposed. Attention's four are "
    "square, so nothing complains there.",
    STORED,
)
def weights_not_transposed(x, w, n_heads):
    return with_linear(x, w, n_heads, without_transpose)


@BANK.mistake(
    "The feed-forward layer's weights are right, and attention's four are used as they are stored: "
    "transposed. They are square, so nothing complains.",
    STORED,
)
def attentions_weights_not_transposed(x, w, n_heads):
    return layer(x, w, n_heads, attention=partial(attention, linear=without_transpose))


@BANK.mistake(
    "The biases of the six linear layers are missing.",
    STORED,
)
def without_biases(x, w, n_heads):
    return with_linear(x, w, n_heads, without_bias)


@BANK.mistake(
    "w_o is missing: the merged heads are added as they are.",
    'Send them through `w["self_attention.w_o.weight"]` and its bias first.',
)
def without_w_o(x, w, n_heads):
    return layer(x, w, n_heads, attention=partial(attention, out=False))


@BANK.mistake(
    "Heads are cut by a `view` straight to (batch, n_heads, seq, d_key), and joined by another: a "
    "head then holds a stretch of memory, rows of several words.",
    TRANSPOSED,
)
def viewed_straight(x, w, n_heads):
    split, merge = splitting.viewed_straight, merging.not_transposed
    return layer(x, w, n_heads, attention=partial(attention, split=split, merge=merge))


@BANK.mistake(
    "Heads are cut by a `view` straight to (batch, n_heads, seq, d_key): a head then holds a "
    "stretch of memory, rows of several words. They are joined rightly.",
    TRANSPOSED,
)
def split_without_transpose(x, w, n_heads):
    return layer(x, w, n_heads, attention=partial(attention, split=splitting.viewed_straight))


@BANK.mistake(
    "The heads are joined without a transpose: a row of the result holds one head's numbers for "
    "several words.",
    TRANSPOSED,
)
def merged_without_transpose(x, w, n_heads):
    return layer(x, w, n_heads, attention=partial(attention, merge=merging.not_transposed))


@BANK.mistake(
    "The heads are cut and no axis is moved: in each word heads attend to heads, and no word sees "
    "another.",
    TRANSPOSED,
)
def heads_attend_to_heads(x, w, n_heads):
    inside = partial(
        attention, split=splitting.not_transposed, merge=lambda heads: heads.flatten(2)
    )
    return layer(x, w, n_heads, attention=inside)


@BANK.mistake(
    "There is one head as wide as d_model: nothing was split.",
    f"A head has d_key = d_model / n_heads columns. {TRANSPOSED}",
)
def a_single_head(x, w, n_heads):
    return layer(x, w, 1)


@BANK.mistake(
    "The scores are divided by √d_model. A head's queries and keys have d_key numbers.",
    "Divide by `q.shape[-1] ** 0.5` after the split.",
)
def divided_by_root_d_model(x, w, n_heads):
    d_model = x.shape[-1]
    return layer(x, w, n_heads, attention=partial(attention, divide_by=d_model**0.5))


@BANK.mistake("The scores are not divided.", "Divide by √d_key, `q.shape[-1] ** 0.5`.")
def not_scaled(x, w, n_heads):
    return layer(x, w, n_heads, attention=partial(attention, divide_by=1.0))


@BANK.mistake(
    "The softmax goes over the queries: the weights of each key sum to 1, and should for each "
    "query.",
    "The keys are the last axis: `scores.softmax(dim=-1)`.",
)
def softmax_over_the_queries(x, w, n_heads):
    return layer(x, w, n_heads, attention=partial(attention, softmax_over=-2))


@BANK.mistake(
    "One more norm stands at the end. A pre-norm layer hands its sum on as it is; the last norm "
    "belongs to the whole stack.",
    PLACES,
)
def normed_at_the_end(x, w, n_heads):
    return norm(layer(x, w, n_heads), w, "feed_forward")


def cases(numbers: Numbers) -> list[Case]:
    def case(d_ff_per_column: int, size: float) -> Case:
        batch, seq, n_heads, d_key = numbers.sizes(4)
        d_model = n_heads * d_key
        with torch.device("meta"):  # the names and the shapes alone
            parameters = EncoderLayer(d_model, n_heads, d_ff_per_column * d_model).state_dict()
        w = {
            # About as large as trained ones, so that the softmax does not decide for one key.
            name: numbers.tensor(*p.shape) / (p.shape[1] ** 0.5 if p.ndim == 2 else 1)
            for name, p in parameters.items()
        }
        x = size * (1 + numbers.tensor(batch, seq, d_model))
        return Case({"x": x, "w": w, "n_heads": n_heads}, unsaid=("w",))

    # With as many hidden numbers as columns, weights that are not transposed raise no error.
    return [case(2, 1.0), case(1, 1.0), case(2, SMALL)]


TASK = Task("pre_norm_layer", pre_norm_layer, BANK, cases, {"rows": "batch seq d_model"})


def check_pre_norm_layer(function: Callable, *, seed: int = 0) -> Result:
    """Check pre_norm_layer(x, w, n_heads) -> rows.

    x (batch, seq, d_model); w, the weights by their names in `EncoderLayer(…).state_dict()`; and
    n_heads -> (batch, seq, d_model): what that layer returns with norm_first=True, without a mask.
    """
    return examine(TASK, function, seed)
