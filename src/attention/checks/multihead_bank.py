"""Mistakes in the whole module: which layer, which input, and those of its parts."""

import torch
from torch.nn import functional as F

from attention.dot_product import scaled_dot_product_attention
from attention.heads import merge_heads, split_heads

from . import dot_product_bank, merging, splitting
from .bank import Bank, Mistake

BANK = Bank()


def project(layer, x):
    """x through one layer: its weight, (d_model, d_model) as nn.Linear stores it, and its bias."""
    return F.linear(x, layer[0], layer[1])


def whole(
    layers,
    n_heads,
    query,
    key,
    value,
    mask,
    *,
    split=split_heads,
    attend=scaled_dot_product_attention,
    merge=merge_heads,
):
    """The module as one function, with parts that can be exchanged -> (output, weights)."""
    q = split(project(layers["w_q"], query), n_heads)
    k = split(project(layers["w_k"], key), n_heads)
    v = split(project(layers["w_v"], value), n_heads)
    attended, weights = attend(q, k, v, mask)
    return project(layers["w_o"], merge(attended)), weights


@BANK.mistake(
    "The output projection is missing: your output is the merged heads. Without w_o no column "
    "depends on more than one head.",
    "End with `self.w_o(merged)`.",
)
def w_o_forgotten(layers, n_heads, query, key, value, mask):
    d_model = query.shape[-1]
    return whole({**layers, "w_o": (torch.eye(d_model), None)}, n_heads, query, key, value, mask)


@BANK.mistake(
    "The weights are used the wrong way round: `x @ linear.weight` reads rows for columns, since "
    "nn.Linear stores its matrix transposed.",
    "Call the layer, `self.w_q(query)`, or write `x @ self.w_q.weight.T + self.w_q.bias`.",
)
def weights_transposed(layers, n_heads, query, key, value, mask):
    turned = {name: (weight.T, bias) for name, (weight, bias) in layers.items()}
    return whole(turned, n_heads, query, key, value, mask)


@BANK.mistake(
    "The biases of the layers are missing.",
    "Call the layer, `self.w_q(query)`: it adds its bias. By hand it is "
    "`x @ self.w_q.weight.T + self.w_q.bias`.",
)
def biases_forgotten(layers, n_heads, query, key, value, mask):
    bare = {name: (weight, None) for name, (weight, _) in layers.items()}
    return whole(bare, n_heads, query, key, value, mask)


@BANK.mistake(
    "The bias of w_o is missing.",
    "It is added once, to the sum over the heads: `+ self.w_o.bias`.",
)
def bias_of_w_o_forgotten(layers, n_heads, query, key, value, mask):
    bare = {**layers, "w_o": (layers["w_o"][0], None)}
    return whole(bare, n_heads, query, key, value, mask)


@BANK.mistake(
    "The bias of w_o is added once for each head, n_heads times in all.",
    "Add it once, to the sum over the heads.",
)
def bias_of_w_o_in_every_head(layers, n_heads, query, key, value, mask):
    weight, bias = layers["w_o"]
    added = {**layers, "w_o": (weight, None if bias is None else n_heads * bias)}
    return whole(added, n_heads, query, key, value, mask)


@BANK.mistake(
    "Only w_o is used the wrong way round: head h's part of it is taken from its rows, and "
    "nn.Linear stores the matrix transposed.",
    "Head h's part are the columns, `self.w_o.weight[:, h * d_key : (h + 1) * d_key].T`.",
)
def rows_of_w_o(layers, n_heads, query, key, value, mask):
    weight, bias = layers["w_o"]
    return whole({**layers, "w_o": (weight.T, bias)}, n_heads, query, key, value, mask)


@BANK.mistake(
    "X is split before it is projected: every head sees d_key columns of a token and is blind to "
    "the others.",
    "Project first, then split: `split_heads(self.w_q(query), n_heads)`.",
)
def split_before_projecting(layers, n_heads, query, key, value, mask):
    d_key = query.shape[-1] // n_heads
    blocks = torch.block_diag(*[torch.ones(d_key, d_key)] * n_heads)
    small = {name: (layers[name][0] * blocks, layers[name][1]) for name in ("w_q", "w_k", "w_v")}
    return whole({**layers, **small}, n_heads, query, key, value, mask)


@BANK.mistake(
    "w_q makes the keys too: with one matrix for both, the scores of a sentence are symmetric.",
    "`self.w_k(key)`.",
)
def w_q_for_the_keys(layers, n_heads, query, key, value, mask):
    return whole({**layers, "w_k": layers["w_q"]}, n_heads, query, key, value, mask)


@BANK.mistake(
    "w_k makes the queries too, or w_q and w_k are one layer under two names (`self.w_q = "
    "self.w_k`): the scores of a sentence are symmetric then.",
    "Make four layers, and use `self.w_q(query)`.",
)
def w_k_for_the_queries(layers, n_heads, query, key, value, mask):
    return whole({**layers, "w_q": layers["w_k"]}, n_heads, query, key, value, mask)


@BANK.mistake(
    "w_k makes the values too.",
    "`self.w_v(value)`.",
)
def w_k_for_the_values(layers, n_heads, query, key, value, mask):
    return whole({**layers, "w_v": layers["w_k"]}, n_heads, query, key, value, mask)


@BANK.mistake(
    "w_k and w_v have changed places.",
    "`self.w_k(key)` and `self.w_v(value)`.",
)
def w_k_and_w_v_swapped(layers, n_heads, query, key, value, mask):
    swapped = {**layers, "w_k": layers["w_v"], "w_v": layers["w_k"]}
    return whole(swapped, n_heads, query, key, value, mask)


@BANK.mistake(
    "w_q and w_k have changed places.",
    "`self.w_q(query)` and `self.w_k(key)`.",
)
def w_q_and_w_k_swapped(layers, n_heads, query, key, value, mask):
    swapped = {**layers, "w_q": layers["w_k"], "w_k": layers["w_q"]}
    return whole(swapped, n_heads, query, key, value, mask)


@BANK.mistake(
    "Keys and values are made from the queries: this is self-attention whatever comes in.",
    "`self.w_k(key)` and `self.w_v(value)`.",
)
def always_self_attention(layers, n_heads, query, key, value, mask):
    return whole(layers, n_heads, query, query, query, mask)


@BANK.mistake(
    "The values are made from the keys, and what was given as value is not used.",
    "`self.w_v(value)`.",
)
def values_from_the_keys(layers, n_heads, query, key, value, mask):
    return whole(layers, n_heads, query, key, key, mask)


@BANK.mistake(
    "The inputs key and value have changed places.",
    "`self.w_k(key)` and `self.w_v(value)`.",
)
def inputs_swapped(layers, n_heads, query, key, value, mask):
    return whole(layers, n_heads, query, value, key, mask)


@BANK.mistake(
    "The values are not projected: tokens hand over their own rows.",
    "`self.w_v(value)` before they are split.",
)
def values_not_projected(layers, n_heads, query, key, value, mask):
    eye = torch.eye(query.shape[-1])
    return whole({**layers, "w_v": (eye, None)}, n_heads, query, key, value, mask)


@BANK.mistake(
    "There is one head as wide as d_model: nothing was split.",
    "Split queries, keys and values into n_heads heads, and merge them afterwards.",
)
def a_single_head(layers, n_heads, query, key, value, mask):
    return whole(layers, 1, query, key, value, mask)


@BANK.mistake(
    "There is one head as wide as d_model, without an axis of heads: nothing was split.",
    "Split queries, keys and values into n_heads heads, and merge them afterwards.",
)
def no_heads(layers, n_heads, query, key, value, mask):
    output, weights = whole(layers, 1, query, key, value, mask)
    return output, weights[:, 0]


@BANK.mistake(
    "The queries are added to the output. This residual belongs to the block around attention.",
    "Return `self.w_o(merged)` as it is.",
)
def residual_added(layers, n_heads, query, key, value, mask):
    output, weights = whole(layers, n_heads, query, key, value, mask)
    return query + output, weights


@BANK.mistake(
    "Heads and tokens have not changed places, neither after the split nor before the merge: in "
    "each token, heads attend to heads, and no token sees another.",
    "`.transpose(1, 2)` after the split, and again before the merge.",
)
def never_transposed(layers, n_heads, query, key, value, mask):
    return whole(
        layers,
        n_heads,
        query,
        key,
        value,
        mask,
        split=splitting.not_transposed,
        merge=lambda x: x.flatten(2),
    )


@BANK.mistake(
    "Heads are cut with a `view` straight to (batch, heads, seq, d_key) and joined with a reshape, "
    "both without a transpose. One seems to undo the other, and the heads are stretches of memory.",
    "Split with `.view(batch, seq, n_heads, d_key).transpose(1, 2)`, and transpose back.",
)
def viewed_there_and_back(layers, n_heads, query, key, value, mask):
    split, merge = splitting.viewed_straight, merging.not_transposed
    return whole(layers, n_heads, query, key, value, mask, split=split, merge=merge)


@BANK.mistake(
    "The weights that come back are those before the mask. The output is right.",
    "Return the weights that the values were multiplied by.",
)
def weights_before_the_mask(layers, n_heads, query, key, value, mask):
    output, _ = whole(layers, n_heads, query, key, value, mask)
    return output, whole(layers, n_heads, query, key, value, None)[1]


@BANK.mistake(
    "A head takes every n_heads-th column, there and back. Trained weights do not fit: a head owns "
    "d_key columns next to each other.",
    "`.view(batch, seq, n_heads, d_key)`, with the heads before d_key.",
)
def dealt_out_there_and_back(layers, n_heads, query, key, value, mask):
    split, merge = splitting.interleaved, merging.interleaved
    return whole(layers, n_heads, query, key, value, mask, split=split, merge=merge)


def within(step: str, part: Mistake) -> Mistake:
    """The whole module with a mistake in one step: "split", "attend" or "merge"."""

    def function(*inputs):
        return whole(*inputs, **{step: part})

    # Evidence speaks of a step's own result. Of these the module returns only the weights.
    evidence = part.evidence if step == "attend" else None
    return Mistake(part.name, function, part.why, part.way_out, evidence)


# Mistakes whose shapes fit the rest of the module, and common ones that end in an error.
BANK += [
    within("split", part)
    for part in (
        splitting.viewed_straight,
        splitting.interleaved,
        splitting.roles_swapped,
        splitting.transposed_before_the_view,
        splitting.d_key_as_a_float,
    )
]
BANK += [
    within("merge", part)
    for part in (
        merging.not_transposed,
        merging.viewed_after_the_transpose,
        merging.interleaved,
        merging.wrong_axes,
        merging.averaged,
    )
]
# Shown by scores that are too large for these inputs, by a value of another width than the key, or
# by the order returned.
SEEN_ELSEWHERE = (
    dot_product_bank.divided_by_root_of_d_value,
    dot_product_bank.exp_overflows,
    dot_product_bank.overflow_turned_into_zero,
    dot_product_bank.largest_of_all_subtracted,
    dot_product_bank.mask_after_softmax_and_divided,
    dot_product_bank.weights_first,
)
BANK += [within("attend", part) for part in dot_product_bank.BANK if part not in SEEN_ELSEWHERE]
