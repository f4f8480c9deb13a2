"""check_pre_norm_layer (chapter 11): a whole layer, from rows and weights to rows."""

from collections.abc import Callable
from functools import partial

import torch

from attention.heads import merge_heads, split_heads
from attention.transformer.encoder import EncoderLayer

from .bank import Bank
from .examining import Task, examine
from .inputs import Case, Numbers
from .merging import BANK as MERGING  # noqa: F401 - rows use it
from .result import Result
from .splitting import BANK as SPLITTING  # noqa: F401

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


BANK = Bank.read(__file__, pre_norm_layer, globals())


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
